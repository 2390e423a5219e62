// The loop of place_in_order (pack.h), for any way to find what conflicts with a newcomer.
#pragma once

#include <algorithm>
#include <limits>

#include "pack/pack.h"

namespace tidepool {

struct AddressRange {
  Bytes begin = 0;
  Bytes end = 0;
};

/// `Placed` knows the placed buffers: `put(id, range)` adds one, and `for_each_conflict(id, visit)`
/// calls `visit(range)` for those that conflict with `id`, by rising begin, until it returns false.
template <class Placed>
Packing place_among(const PackProblem& problem, std::span<const std::int32_t> order,
                    bool choose_smallest_hole, Placed placed) {
  constexpr Bytes kNowhere = -1;
  constexpr std::size_t kBetweenQuestions = 64;  // at 200,000 buffers a few milliseconds
  Packing packing;
  packing.offsets.assign(problem.sizes.size(), kNowhere);
  std::size_t count = 0;
  const auto put = [&](std::int32_t id, Bytes offset) {
    const auto buffer = static_cast<std::size_t>(id);
    packing.offsets[buffer] = offset;
    const AddressRange range{offset, offset + problem.sizes[buffer]};
    packing.footprint = std::max(packing.footprint, range.end);
    placed.put(id, range);
    ++count;
  };
  for (std::size_t i = 0; i < problem.fixed.size(); ++i) {
    if (problem.fixed[i] >= 0) put(static_cast<std::int32_t>(i), problem.fixed[i]);
  }
  for (const std::int32_t id : order) {
    const auto buffer = static_cast<std::size_t>(id);
    if (packing.offsets[buffer] != kNowhere) continue;
    if (count % kBetweenQuestions == 0 && problem.stop.requested()) {
      packing.footprint = std::numeric_limits<Bytes>::max();
      break;
    }
    const Bytes size = problem.sizes[buffer];
    Bytes best = kNowhere;
    Bytes best_hole = std::numeric_limits<Bytes>::max();
    Bytes top = 0;
    placed.for_each_conflict(id, [&](const AddressRange& other) {
      const Bytes hole = other.begin - top;
      if (hole >= size && hole < best_hole) {
        best = top;
        best_hole = hole;
        if (!choose_smallest_hole) return false;
      }
      top = std::max(top, other.end);
      return true;
    });
    put(id, best == kNowhere ? top : best);
    if (packing.footprint > problem.give_up_above) break;
  }
  return packing;
}

}  // namespace tidepool
