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

std::optional<std::pair<std::int32_t, std::int32_t>> fixed_clash(const PackProblem& problem) {
  for (std::size_t a = 0; a < problem.fixed.size(); ++a) {
    if (problem.fixed[a] < 0) continue;
    for (const std::int32_t id : problem.conflicts(a)) {
      const auto b = static_cast<std::size_t>(id);
      if (b < a || problem.fixed[b] < 0) continue;
      if (problem.fixed[a] < problem.fixed[b] + problem.sizes[b] &&
          problem.fixed[b] < problem.fixed[a] + problem.sizes[a]) {
        return std::pair(static_cast<std::int32_t>(a), id);
      }
    }
  }
  return std::nullopt;
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
  const auto put = [&](std::int32_t id, Bytes offset) {
    const auto buffer = static_cast<std::size_t>(id);
    packing.offsets[buffer] = offset;
    packing.footprint = std::max(packing.footprint, offset + problem.sizes[buffer]);
    placed.insert(std::upper_bound(placed.begin(), placed.end(), std::pair(offset, id)),
                  std::pair(offset, id));
  };
  for (std::size_t i = 0; i < problem.fixed.size(); ++i) {
    if (problem.fixed[i] >= 0) put(static_cast<std::int32_t>(i), problem.fixed[i]);
  }
  for (const std::int32_t id : order) {
    const auto buffer = static_cast<std::size_t>(id);
    if (packing.offsets[buffer] != kNone) continue;
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
    put(id, best == kNone ? top : best);
  }
  return packing;
}

}  // namespace tidepool
