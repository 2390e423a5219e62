#include "planners/toolkit/decision_reasons.h"

#include <fmt/format.h>

#include <string>

#include "base/at.h"
#include "base/counted.h"
#include "planners/toolkit/recomputation.h"
#include "planners/toolkit/unstalled_starts.h"

namespace tidepool {
namespace {

/// Longer ones are not looked through for a sentence.
constexpr std::size_t kLongestChain = 200;

class Reasons {
 public:
  Reasons(const Program& program, const AccessIndex& index, const Machine& machine,
          const Strategy& strategy)
      : program_(program),
        index_(index),
        machine_(machine),
        strategy_(strategy),
        starts_(unstalled_starts(program, strategy.algorithms)),
        recomputation_(program, index) {}

  std::string of(GapId id) {
    const Gap& gap = index_.gaps()[at(id)];
    if (gap.kind != GapKind::device) return "nothing is decided here";
    const Bytes bytes = program_.tensors[at(gap.tensor)].bytes;
    const Nanos in = machine_.from_away().time(bytes);
    const Nanos both = machine_.to_away().time(bytes) + in;
    const std::string idle = format_time(idle_time(gap, starts_));
    switch (strategy_.gaps[at(id)]) {
      case Decision::keep:
        return "kept: the load fits with it";
      case Decision::swap:
        return fmt::format("its copies cost {}, and the gap is {} long", format_time(both), idle);
      case Decision::drop:
        if (gap.dead) return "nobody reads its value again";
        return fmt::format("the host has it: only the copy in costs {}, and the gap is {} long",
                           format_time(in), idle);
      case Decision::recompute:
        return recomputed(id, both);
    }
    return {};
  }

 private:
  std::string recomputed(GapId id, Nanos copies) {
    const auto chain = recomputation_.chain(id, strategy_, kLongestChain);
    if (!chain) {
      return fmt::format("made again together with others; its copies would cost {}",
                         format_time(copies));
    }
    const Nanos again = recomputation_.time(*chain, strategy_);
    return fmt::format("running its producers again ({}) costs {}, {} its copies ({})",
                       counted(chain->size(), "op"), format_time(again),
                       again < copies ? "less than" : "and the search found that better than",
                       format_time(copies));
  }

  const Program& program_;
  const AccessIndex& index_;
  const Machine& machine_;
  const Strategy& strategy_;
  std::vector<Nanos> starts_;
  Recomputation recomputation_;
};

}  // namespace

void add_reasons(const Program& program, const AccessIndex& index, const Machine& machine,
                 Strategy& strategy) {
  const std::size_t gaps = index.gaps().size();
  if (strategy.gaps.size() != gaps || strategy.algorithms.size() != program.ops.size()) return;
  strategy.reasons.resize(gaps);
  Reasons reasons(program, index, machine, strategy);
  for (std::size_t g = 0; g < gaps; ++g) {
    if (strategy.reasons[g].empty()) {
      strategy.reasons[g] = reasons.of(GapId{static_cast<std::int32_t>(g)});
    }
  }
}

}  // namespace tidepool
