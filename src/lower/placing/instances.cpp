#include "lower/placing/instances.h"

#include <algorithm>

namespace tidepool {

Instances find_instances(const Program& program, const Strategy& strategy,
                         const Expansion& expansion, std::span<const Step> steps) {
  std::vector<std::int32_t> call_step(expansion.calls.size(), kNone);
  std::vector<std::int32_t> move_step(expansion.moves.size(), kNone);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    auto& list = steps[i].kind == StepKind::op ? call_step : move_step;
    list[static_cast<std::size_t>(steps[i].id)] = static_cast<std::int32_t>(i);
  }
  const auto step_of = [](const std::vector<std::int32_t>& list, std::int32_t id) {
    return id == kNone ? kNone : list[static_cast<std::size_t>(id)];
  };
  Instances result;
  for (const Life& life : expansion.lives) {
    Instance instance;
    instance.tensor = life.tensor;
    instance.space = life.space;
    instance.always = life.always;
    instance.crosses = life.crosses;
    instance.fixed_offset = life.fixed_offset;
    instance.bytes = program.tensors[static_cast<std::size_t>(life.tensor)].bytes;
    instance.begin = life.begin_call != kNone ? step_of(call_step, life.begin_call)
                                              : step_of(move_step, life.begin_move);
    instance.end =
        std::max({life.crosses ? kNone : instance.begin, step_of(call_step, life.last_call),
                  step_of(move_step, life.end_move)});
    result.all.push_back(instance);
  }
  for (std::size_t c = 0; c < expansion.calls.size(); ++c) {
    const auto op = static_cast<std::size_t>(expansion.calls[c].op);
    const auto choice = static_cast<std::size_t>(strategy.algorithms[op]);
    const Bytes workspace = program.ops[op].algorithms[choice].workspace;
    if (workspace == 0) {
      result.workspace.push_back(kNone);
      continue;
    }
    Instance instance;
    instance.begin = instance.end = call_step[c];
    instance.bytes = workspace;
    result.workspace.push_back(static_cast<InstanceId>(result.all.size()));
    result.all.push_back(instance);
  }
  return result;
}

}  // namespace tidepool
