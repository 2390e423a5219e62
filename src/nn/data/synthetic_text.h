// Tokens made from a seed: each sample counts up by a step of its own. Needs no files, has any
// size, and can be learnt.
#pragma once

#include "nn/data/token_samples.h"

namespace tidepool::nn {

class SyntheticText final : public TokenSamples {
 public:
  /// Tokens are below `vocabulary`, and below 256.
  SyntheticText(const TokenTask& task, std::int64_t vocabulary, std::int64_t size);
  [[nodiscard]] std::string name() const override { return "synthetic"; }
  [[nodiscard]] std::int64_t size() const override { return size_; }

 private:
  void write_window(std::int64_t sample, std::span<std::int32_t> to) const override;

  std::int64_t size_;
};

}  // namespace tidepool::nn
