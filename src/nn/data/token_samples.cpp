#include "nn/data/token_samples.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

#include "base/random.h"

namespace tidepool::nn {
namespace {

constexpr std::size_t kTokens = 0;  ///< the field

}  // namespace

std::int64_t masked_tokens(std::int64_t sequence) {
  constexpr std::int64_t kPercent = 15;
  return std::max<std::int64_t>(1, sequence * kPercent / 100);
}

TokenSamples::TokenSamples(const TokenTask& task, std::int64_t classes)
    : task_(task), classes_(classes) {
  assert(task.sequence > 0 && classes > 1);
}

std::vector<Field> TokenSamples::fields() const {
  const ValueType type{{task_.sequence}, ElementType::i32};
  return {{"tokens", type, classes_}, {"labels", type, classes_}};
}

/// The places with the smallest random numbers.
std::vector<bool> TokenSamples::masked_places(std::int64_t sample) const {
  const std::uint64_t key = hash_combine(mix64(task_.seed), static_cast<std::uint64_t>(sample));
  std::vector<std::pair<std::uint64_t, std::size_t>> places;
  for (std::size_t i = 0; i < static_cast<std::size_t>(task_.sequence); ++i) {
    places.emplace_back(hash_combine(key, i), i);
  }
  const auto end = places.begin() + masked_tokens(task_.sequence);
  std::partial_sort(places.begin(), end, places.end());
  std::vector<bool> masked(places.size());
  for (auto place = places.begin(); place != end; ++place) masked[place->second] = true;
  return masked;
}

void TokenSamples::read(std::size_t field, std::int64_t sample, std::byte* to) const {
  const auto sequence = static_cast<std::size_t>(task_.sequence);
  std::vector<std::int32_t> window(sequence + 1);
  write_window(sample, window);
  const std::int32_t* from = window.data();
  if (task_.masked) {
    const std::vector<bool> masked = masked_places(sample);
    const std::uint64_t key = hash_combine(~task_.seed, static_cast<std::uint64_t>(sample));
    for (std::size_t i = 0; i < sequence; ++i) {
      if (field != kTokens) {
        if (!masked[i]) window[i] = -1;
      } else if (masked[i]) {
        const std::uint64_t bits = hash_combine(key, i);
        const auto others = static_cast<std::uint64_t>(classes_) - 1;
        if (bits % 10 < 8) {
          window[i] = kMaskToken;
        } else if (bits % 10 == 8) {
          window[i] = static_cast<std::int32_t>(1 + (bits >> 32) % others);
        }
      }
    }
  } else if (field != kTokens) {
    ++from;
  }
  std::memcpy(to, from, sequence * sizeof(std::int32_t));
}

}  // namespace tidepool::nn
