#include "planners/toolkit/strategy_builder.h"

#include <fmt/format.h>

#include "base/at.h"
#include "lower/expand.h"

namespace tidepool {

StrategyBuilder::StrategyBuilder(const Program& program, const AccessIndex& index,
                                 std::vector<std::int32_t> algorithms)
    : program_(program),
      index_(index),
      strategy_(keep_everything(program, index, std::move(algorithms))) {}

void StrategyBuilder::decide(GapId g, Decision decision) {
  if (g < 0 || at(g) >= index_.gaps().size()) {
    if (refused_.empty()) refused_ = fmt::format("there is no gap {}", g);
    return;
  }
  const Gap& gap = index_.gaps()[at(g)];
  if (gap.kind != GapKind::device) {
    const Tensor& tensor = program_.tensors[at(gap.tensor)];
    if (refused_.empty()) {
      refused_ = fmt::format("tensor '{}' after op '{}': {}, so nothing is decided", tensor.name,
                             program_.ops[at(gap.from)].name,
                             gap.kind != GapKind::kept ? "a host op is next to it"
                             : tensor.pinned           ? "it is pinned"
                                                       : "its home is the device");
    }
    return;
  }
  strategy_.gaps[at(g)] = decision;
  derive_drops(index_, gap.tensor, strategy_.gaps);
}

void StrategyBuilder::run(OpId op, std::int32_t algorithm) {
  const bool exists = op >= 0 && at(op) < program_.ops.size() && algorithm >= 0 &&
                      at(algorithm) < program_.ops[at(op)].algorithms.size();
  if (exists) {
    strategy_.algorithms[at(op)] = algorithm;
  } else if (refused_.empty()) {
    const bool known = op >= 0 && at(op) < program_.ops.size();
    refused_ =
        known ? fmt::format("op '{}' has no algorithm {}", program_.ops[at(op)].name, algorithm)
              : fmt::format("there is no op {}", op);
  }
}

Decision StrategyBuilder::decision(GapId gap) const { return strategy_.gaps[at(gap)]; }

const Strategy& StrategyBuilder::strategy() {
  strategy_.hints = hints_;
  for (CopyHint& hint : strategy_.hints) {
    const bool known = hint.gap >= 0 && at(hint.gap) < strategy_.gaps.size();
    if (!known || strategy_.gaps[at(hint.gap)] != Decision::drop) continue;
    hint.out_trigger.reset();
    hint.out_barrier.reset();
  }
  return strategy_;
}

Result<Strategy> StrategyBuilder::build() {
  if (refused_.empty() && strategy_.algorithms.size() != program_.ops.size()) {
    refused_ =
        fmt::format("{} algorithms for {} ops", strategy_.algorithms.size(), program_.ops.size());
  }
  for (std::size_t i = 0; refused_.empty() && i < program_.ops.size(); ++i) {
    run(static_cast<OpId>(i), strategy_.algorithms[i]);
  }
  if (!refused_.empty()) return fail(ErrorCode::bad_input, refused_);
  Expansion expansion;
  std::string why = Expander(program_, index_).expand(strategy(), expansion);
  if (!why.empty()) return fail(ErrorCode::bad_input, std::move(why));
  return strategy_;
}

}  // namespace tidepool
