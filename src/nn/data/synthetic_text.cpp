#include "nn/data/synthetic_text.h"

#include <algorithm>

#include "base/random.h"

namespace tidepool::nn {

SyntheticText::SyntheticText(const TokenTask& task, std::int64_t vocabulary, std::int64_t size)
    : TokenSamples(task, std::min<std::int64_t>(vocabulary, 256)), size_(size) {}

void SyntheticText::write_window(std::int64_t sample, std::span<std::int32_t> to) const {
  constexpr std::uint64_t kSteps = 3;
  const std::uint64_t bits =
      hash_combine(mix64(task().seed) + 1, static_cast<std::uint64_t>(sample));
  const auto others = static_cast<std::uint64_t>(classes()) - 1;  // all but kMaskToken
  std::uint64_t token = bits % others;
  const std::uint64_t step = 1 + (bits >> 32) % kSteps;
  for (std::int32_t& each : to) {
    each = static_cast<std::int32_t>(1 + token);
    token = (token + step) % others;
  }
}

}  // namespace tidepool::nn
