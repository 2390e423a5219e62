#include "plan/pack/pack.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

#include "plan/pack/best_fit.h"
#include "plan/pack/first_fit.h"

namespace tidepool {

std::span<const Packer> packers() {
  static constexpr std::array<Packer, 2> kAll{{
      {"best-fit", pack_best_fit},
      {"first-fit", pack_first_fit},
  }};
  return kAll;
}

std::vector<std::int32_t> by_size_descending(const PackProblem& problem) {
  std::vector<std::int32_t> order(problem.sizes.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    const auto x = static_cast<std::size_t>(a);
    const auto y = static_cast<std::size_t>(b);
    if (problem.sizes[x] != problem.sizes[y]) return problem.sizes[x] > problem.sizes[y];
    return problem.starts[x] < problem.starts[y];
  });
  return order;
}

Packing place_in_order(const PackProblem& problem, std::span<const std::int32_t> order,
                       bool choose_smallest_hole) {
  constexpr Bytes kNone = -1;
  Packing packing;
  packing.offsets.assign(problem.sizes.size(), kNone);
  // All placed buffers by offset; those that conflict with the current one carry its mark. Walking
  // the whole list costs less than sorting the neighbours anew for every buffer.
  std::vector<std::pair<Bytes, std::int32_t>> placed;
  placed.reserve(order.size());
  std::vector<std::int32_t> mark(problem.sizes.size(), -1);
  for (const std::int32_t id : order) {
    const auto buffer = static_cast<std::size_t>(id);
    for (const std::int32_t other : problem.conflicts(buffer)) {
      mark[static_cast<std::size_t>(other)] = id;
    }
    const Bytes size = problem.sizes[buffer];
    Bytes best = kNone;
    Bytes best_hole = std::numeric_limits<Bytes>::max();
    Bytes top = 0;
    for (const auto& [begin, other] : placed) {
      const auto o = static_cast<std::size_t>(other);
      if (mark[o] != id) continue;
      const Bytes hole = begin - top;
      if (hole >= size && hole < best_hole) {
        best = top;
        best_hole = hole;
        if (!choose_smallest_hole) break;
      }
      top = std::max(top, begin + problem.sizes[o]);
    }
    const Bytes offset = best == kNone ? top : best;
    packing.offsets[buffer] = offset;
    packing.footprint = std::max(packing.footprint, offset + size);
    placed.insert(std::upper_bound(placed.begin(), placed.end(), std::pair(offset, id)),
                  std::pair(offset, id));
  }
  return packing;
}

}  // namespace tidepool
