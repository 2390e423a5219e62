#include "planners/toolkit/remakable_gaps.h"

#include <algorithm>

#include "base/at.h"
#include "planners/toolkit/candidate_gaps.h"
#include "planners/toolkit/recomputation.h"

namespace tidepool {
namespace {

/// Of these tensors, those that an op runs in or ends; none wraps.
std::vector<GapId> open_gaps(const AccessIndex& index, std::span<const TensorId> tensors, OpId op) {
  std::vector<GapId> open;
  for (const TensorId t : tensors) {
    const auto gaps = index.gaps(t);
    const auto gap = std::partition_point(gaps.begin(), gaps.end(),
                                          [&](const Gap& g) { return !g.wraps && g.to < op; });
    if (gap == gaps.end() || gap->wraps || gap->from >= op) continue;
    open.push_back(index.first_gap(t) + static_cast<GapId>(gap - gaps.begin()));
  }
  return open;
}

}  // namespace

std::vector<RemakableGap> remakable_gaps(const Program& program, const AccessIndex& index,
                                         const Machine& machine,
                                         const std::vector<std::int32_t>& algorithms,
                                         const Stop& stop) {
  constexpr std::size_t kLongestChain = 64;
  std::vector<RemakableGap> all;
  const Bytes smallest = smallest_worth_moving(program, index, machine, algorithms);
  Strategy kept = keep_everything(program, index, algorithms);
  Recomputation recomputation(program, index);
  for (const GapId g : candidate_gaps(program, index, smallest)) {
    const Gap& gap = index.gaps()[at(g)];
    if (gap.wraps || gap.dead || gap.to == gap.from + 1) continue;
    if (stop.requested()) break;
    kept.gaps[at(g)] = Decision::recompute;
    if (const auto chain = recomputation.chain(g, kept, kLongestChain); chain && !chain->empty()) {
      all.push_back({g, gap.from, gap.to, program.tensors[at(gap.tensor)].bytes,
                     recomputation.time(*chain, kept),
                     open_gaps(index, recomputation.sources(), gap.to)});
    }
    kept.gaps[at(g)] = Decision::keep;
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const RemakableGap& a, const RemakableGap& b) { return a.from < b.from; });
  return all;
}

AwayGaps cheapest_remade(std::span<const RemakableGap> remakable, std::size_t gaps, double part) {
  std::vector<const RemakableGap*> order;
  double all = 0;
  for (const RemakableGap& gap : remakable) {
    order.push_back(&gap);
    all += static_cast<double>(gap.bytes);
  }
  const auto cost = [](const RemakableGap& gap) {
    return static_cast<double>(gap.time.count()) / static_cast<double>(gap.bytes);
  };
  std::stable_sort(order.begin(), order.end(), [&](const RemakableGap* a, const RemakableGap* b) {
    return cost(*a) < cost(*b);
  });
  AwayGaps away(gaps, kStays);
  double sum = 0;
  for (const RemakableGap* gap : order) {
    if (sum >= part * all) break;
    sum += static_cast<double>(gap->bytes);
    away[at(gap->gap)] = kRemade;
  }
  return away;
}

}  // namespace tidepool
