#include "planners/auto/size_order.h"

#include <algorithm>

#include "ir/load_profile.h"

namespace tidepool {
namespace {

std::size_t fastest_of(std::span<const TriedSize> sizes) {
  const auto best =
      std::min_element(sizes.begin(), sizes.end(),
                       [](const TriedSize& a, const TriedSize& b) { return a.time < b.time; });
  return static_cast<std::size_t>(best - sizes.begin());
}

}  // namespace

std::optional<std::size_t> next_size(std::span<const TriedSize> sizes, std::size_t guess) {
  const std::size_t n = sizes.size();
  if (!sizes[guess].tried) return guess;
  const std::size_t best = fastest_of(sizes);
  if (sizes[best].time == Nanos::max()) {
    std::size_t untried = n;  // all from here on
    while (untried > 0 && !sizes[untried - 1].tried) --untried;
    if (untried == n) return std::nullopt;
    return untried + (n - untried) / 2;
  }
  std::size_t larger = best;
  while (larger > 0 && !sizes[larger - 1].tried) --larger;
  std::size_t end = best + 1;
  while (end < n && !sizes[end].tried) ++end;
  const std::size_t before = best - larger;
  const std::size_t behind = end - best - 1;
  if (before == 0 && behind == 0) return std::nullopt;
  return before >= behind ? larger + before / 2 : best + 1 + behind / 2;
}

std::size_t size_that_fits(std::span<const TriedSize> sizes, const Lowering& known, Bytes budget) {
  const Program& program = known.program();
  const Bytes alignment = known.machine().alignment();
  double persistent = 0;
  double summed = 0;
  for (const Tensor& t : program.tensors) {
    const auto bytes = static_cast<double>(align_up(t.bytes, alignment));
    if (t.persistent) persistent += bytes;
    if (t.kind == TensorKind::weight) summed += bytes;
  }
  const auto peak = static_cast<double>(
      load_profile(program, known.index(), alignment, least_workspace_algorithms(program)).peak);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const double part = static_cast<double>(sizes[i].sub_batch) /
                        static_cast<double>(std::max<std::int64_t>(program.sub_batch, 1));
    const double sums = sizes[i].sub_batch < program.batch ? summed : 0;
    const double load = persistent + sums + std::max(peak - persistent, 0.0) * part;
    if (load <= static_cast<double>(budget)) return i;
  }
  return sizes.size() - 1;
}

}  // namespace tidepool
