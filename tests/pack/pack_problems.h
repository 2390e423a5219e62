// Random packing problems for the tests of plan/pack.
#pragma once

#include <algorithm>

#include "base/random.h"
#include "pack/lifetimes.h"

namespace tidepool::testing {

inline PackProblem random_lifetimes(std::uint64_t seed, std::size_t buffers, std::uint64_t times,
                                    std::uint64_t largest) {
  Random random(seed);
  std::vector<Bytes> sizes;
  std::vector<Lifetime> lifetimes;
  for (std::size_t i = 0; i < buffers; ++i) {
    const auto lower = static_cast<std::int64_t>(random.below(times));
    const auto length = static_cast<std::int64_t>(1 + random.below(times / 2));
    sizes.push_back(static_cast<Bytes>(1 + random.below(largest)));
    lifetimes.push_back({lower, lower + length});
  }
  return lifetime_problem(std::move(sizes), std::move(lifetimes));
}

/// A conflict graph with every second edge: no lifetimes need to explain it.
inline PackProblem random_graph(std::uint64_t seed, std::size_t buffers, std::uint64_t largest) {
  PackProblem p;
  const auto conflict = [&](std::size_t a, std::size_t b) {
    return a != b && hash_combine(seed, std::min(a, b) * buffers + std::max(a, b)) % 2 == 0;
  };
  for (std::size_t i = 0; i < buffers; ++i) {
    p.sizes.push_back(static_cast<Bytes>(1 + hash_combine(seed + 1, i) % largest));
    p.starts.push_back(static_cast<std::int32_t>(i));
    p.neighbour_start.push_back(static_cast<std::int32_t>(p.neighbours.size()));
    for (std::size_t j = 0; j < buffers; ++j) {
      if (conflict(i, j)) p.neighbours.push_back(static_cast<std::int32_t>(j));
    }
  }
  p.neighbour_start.push_back(static_cast<std::int32_t>(p.neighbours.size()));
  return p;
}

/// Holds in a cycle of `length`: of several kinds, some over the end of the cycle, some for ever,
/// and kinds that learn of an end at different times.
inline PackProblem random_holds(std::uint64_t seed, std::size_t buffers, std::uint64_t length,
                                std::uint64_t longest, std::uint64_t largest) {
  Random random(seed);
  PackProblem p;
  const auto cycle = static_cast<std::int32_t>(length);
  const std::uint64_t kinds = 1 + random.below(Hold::kKinds);
  for (std::size_t i = 0; i < buffers; ++i) {
    Hold hold = Hold::for_ever();
    if (random.below(16) != 0) {
      hold.begin = static_cast<std::int32_t>(random.below(length));
      hold.kind = static_cast<std::int32_t>(random.below(kinds));
      const auto end = hold.begin + 1 + static_cast<std::int32_t>(random.below(longest));
      for (std::size_t k = 0; k < Hold::kKinds; ++k) {
        const auto late = random.below(2) == 0 ? 0 : static_cast<std::int32_t>(random.below(9));
        hold.until[k] = end + late;
        hold.until_next[k] = std::max(0, end + late - cycle);
        if (end + late >= cycle && random.below(2) == 0) hold.until[k] = Hold::kNever;
      }
    }
    p.sizes.push_back(static_cast<Bytes>(1 + random.below(largest)));
    p.starts.push_back(hold.begin);
    p.holds.push_back(hold);
  }
  return p;
}

}  // namespace tidepool::testing
