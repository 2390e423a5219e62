#include "planners/published/home/feature_maps.h"

#include <algorithm>
#include <tuple>

#include "base/at.h"
#include "ir/load_profile.h"
#include "planners/toolkit/candidate_gaps.h"
#include "planners/toolkit/layer_passes.h"

namespace tidepool {
namespace {

/// "PRE_i begins with BWD_{i+2}": the first op of the backward pass before the one that reads. The
/// pass before, of whatever phase, where there is no backward pass in the gap; in the gap always.
OpId fetch_op(const Program& program, const LayerPasses& passes, const Gap& gap) {
  const std::int32_t reader = passes.pass_of(gap.to);
  const std::int32_t leaver = passes.pass_of(gap.from);
  std::int32_t before = reader - 1;
  while (before > leaver && passes.pass(at(before)).phase != Phase::backward) --before;
  if (before <= leaver) before = std::max(reader - 1, leaver);
  OpId op = std::max<OpId>(passes.pass(at(before)).first, gap.from + 1);
  while (op < gap.to && program.ops[at(op)].place == OpPlace::host) ++op;
  return op;
}

}  // namespace

FeatureMaps::FeatureMaps(const Program& program, const AccessIndex& index, const Machine& machine,
                         std::span<const std::int32_t> algorithms, const MayDecide& may)
    : values_(program, index, machine.alignment(), algorithms) {
  const LayerPasses passes(program,
                           load_profile(program, index, machine.alignment(), algorithms).at_op);
  for (const GapId id :
       candidate_gaps(program, index, smallest_worth_moving(program, index, machine, algorithms))) {
    const Gap& gap = index.gaps()[at(id)];
    const Tensor& tensor = program.tensors[at(gap.tensor)];
    const bool map = tensor.kind == TensorKind::activation || tensor.kind == TensorKind::input;
    if (tensor.persistent || !map || gap.dead || gap.wraps) continue;
    if (passes.phase_of(gap.from) != Phase::forward || passes.phase_of(gap.to) != Phase::backward) {
      continue;
    }
    MapChoice m{.gap = id,
                .value = values_.find(gap.tensor, gap.version),
                .from = gap.from,
                .to = gap.to,
                .fetch_at = fetch_op(program, passes, gap)};
    m.may_swap = may.swap;
    m.may_recompute = may.recompute && values_.can_be_made_again(m.value, gap.to);
    if (m.may_swap || m.may_recompute) maps_.push_back(m);
  }
  std::sort(maps_.begin(), maps_.end(), [](const MapChoice& a, const MapChoice& b) {
    return std::tie(a.from, a.gap) < std::tie(b.from, b.gap);
  });
}

std::vector<std::vector<std::uint8_t>> FeatureMaps::choices() const {
  std::vector<std::vector<std::uint8_t>> all;
  for (const MapChoice& m : maps_) {
    auto& of = all.emplace_back();
    of.push_back(static_cast<std::uint8_t>(Action::keep));
    if (m.may_swap) of.push_back(static_cast<std::uint8_t>(Action::swap));
    if (m.may_recompute) of.push_back(static_cast<std::uint8_t>(Action::recompute));
  }
  return all;
}

}  // namespace tidepool
