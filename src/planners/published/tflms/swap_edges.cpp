#include "planners/published/tflms/swap_edges.h"

#include <algorithm>

#include "base/at.h"
#include "planners/toolkit/strategy_builder.h"

namespace tidepool {
namespace {

/// The first of the device ops before the gap's end, one after another, that are no more than so
/// many levels below it.
OpId levels_ahead(const Program& program, const Gap& gap, const std::vector<std::int32_t>& levels,
                  std::int32_t ahead) {
  OpId trigger = gap.to;
  for (OpId op = gap.to - 1; op > gap.from; --op) {
    if (program.ops[at(op)].place == OpPlace::host) continue;
    if (levels[at(op)] < levels[at(gap.to)] - ahead) break;
    trigger = op;
  }
  return trigger;
}

}  // namespace

std::vector<std::int32_t> topological_levels(const Program& program) {
  // The last op that made each tensor's value, as the program is walked.
  std::vector<OpId> maker(program.tensors.size(), kNone);
  std::vector<std::int32_t> levels(program.ops.size(), 0);
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    for (const Access& a : program.ops[i].accesses) {
      const OpId made = maker[at(a.tensor)];
      if (a.mode == AccessMode::write || made == kNone) continue;
      levels[i] = std::max(levels[i], levels[at(made)] + 1);
    }
    for (const Access& a : program.ops[i].accesses) {
      if (a.mode != AccessMode::read) maker[at(a.tensor)] = static_cast<OpId>(i);
    }
  }
  return levels;
}

Strategy swap_edges(const Program& program, const AccessIndex& index,
                    const std::vector<std::int32_t>& levels, const EdgeParameters& parameters,
                    std::vector<std::int32_t> algorithms) {
  StrategyBuilder builder(program, index, std::move(algorithms));
  for (TensorId t = 0; t < static_cast<TensorId>(program.tensors.size()); ++t) {
    if (program.tensors[at(t)].persistent) continue;
    const auto accesses = index.accesses(t);
    const auto gaps = index.gaps(t);
    OpId maker = kNone;
    OpId first_of_group = kNone;  // the reader for which the value was copied in last
    for (std::size_t i = 0; i < gaps.size(); ++i) {
      const Gap& gap = gaps[i];
      if (accesses[i].version_written != kNone) {
        maker = accesses[i].op;
        first_of_group = kNone;
      }
      if (gap.kind != GapKind::device || gap.dead) continue;
      const std::int32_t level = levels[at(gap.to)];
      if (level - levels[at(maker)] <= parameters.threshold) continue;
      if (first_of_group != kNone && level - levels[at(first_of_group)] <= parameters.group) {
        continue;
      }
      first_of_group = gap.to;
      const GapId id = index.first_gap(t) + static_cast<GapId>(i);
      builder.away(id);
      CopyHint hint;
      hint.gap = id;
      hint.in_trigger = levels_ahead(program, gap, levels, parameters.ahead);
      builder.hint(hint);
    }
  }
  return builder.strategy();
}

}  // namespace tidepool
