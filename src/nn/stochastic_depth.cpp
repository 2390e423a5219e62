#include "nn/stochastic_depth.h"

#include <cassert>

#include "base/random.h"
#include "ir/program.h"

namespace tidepool::nn {
namespace {

/// Tells these numbers from others of the same seed.
constexpr std::uint64_t kKey = 0x73746f6368646570;

}  // namespace

double survival_probability(int index, int blocks, double of_last) {
  assert(index >= 1 && index <= blocks);
  return 1 - static_cast<double>(index) / blocks * (1 - of_last);
}

std::uint32_t draw_branches(std::span<const double> survival, std::uint64_t seed,
                            std::int64_t iteration) {
  assert(survival.size() <= kMostGuards);
  const std::uint64_t key =
      hash_combine(hash_combine(mix64(seed), kKey), static_cast<std::uint64_t>(iteration));
  std::uint32_t on = ~0U;
  for (std::size_t g = 0; g < survival.size(); ++g) {
    const double uniform = static_cast<double>(hash_combine(key, g) >> 11) * 0x1.0p-53;
    if (uniform >= survival[g]) on &= ~(1U << g);
  }
  return on;
}

}  // namespace tidepool::nn
