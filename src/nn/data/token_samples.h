// TokenSamples: sequences of tokens for models of text. A source of the fields "tokens" and
// "labels", one of each for each place.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "nn/data/sample_source.h"

namespace tidepool::nn {

/// What a model is trained on.
struct TokenTask {
  std::int64_t sequence = 0;  ///< tokens of a sample
  /// The labels are the masked tokens, as BERT's are (Devlin et al. 2019, section 3.1), and -1
  /// elsewhere; otherwise each is the token that follows.
  bool masked = false;
  std::uint64_t seed = 1;  ///< of the masks, and of what a source draws besides
};

/// So many tokens of a sample are masked: 15 %, at least one; the same number in every sample.
std::int64_t masked_tokens(std::int64_t sequence);

/// Stands where a token is masked. No source has it in its text.
inline constexpr std::int32_t kMaskToken = 0;

/// Of the masked tokens 8 of 10 are replaced by kMaskToken, one by a random one, one not at all.
/// Which these are is a function of the seed, the sample and the place.
class TokenSamples : public SampleSource {
 public:
  [[nodiscard]] std::vector<Field> fields() const final;
  void read(std::size_t field, std::int64_t sample, std::byte* to) const final;

 protected:
  /// Tokens are in [0, classes).
  TokenSamples(const TokenTask& task, std::int64_t classes);
  /// Writes the tokens of a sample and the one that follows them: task().sequence + 1.
  virtual void write_window(std::int64_t sample, std::span<std::int32_t> to) const = 0;
  [[nodiscard]] const TokenTask& task() const { return task_; }
  [[nodiscard]] std::int64_t classes() const { return classes_; }

 private:
  /// Of each place of a sample.
  [[nodiscard]] std::vector<bool> masked_places(std::int64_t sample) const;

  TokenTask task_;
  std::int64_t classes_;
};

}  // namespace tidepool::nn
