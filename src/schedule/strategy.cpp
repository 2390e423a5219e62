#include "schedule/strategy.h"

namespace tidepool {

const char* to_string(Decision decision) {
  switch (decision) {
    case Decision::keep:
      return "keep";
    case Decision::swap:
      return "swap";
    case Decision::drop:
      return "drop";
    case Decision::recompute:
      return "recompute";
  }
  return "?";
}

Strategy keep_everything(const Program& program, const AccessIndex& index,
                         std::vector<std::int32_t> algorithms) {
  Strategy strategy;
  strategy.planner = "none";
  strategy.sub_batch = program.sub_batch;
  strategy.gaps.assign(index.gaps().size(), Decision::keep);
  strategy.algorithms = std::move(algorithms);
  return strategy;
}

}  // namespace tidepool
