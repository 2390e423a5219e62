#include "planners/toolkit/layer_passes.h"

#include <algorithm>
#include <map>

#include "base/at.h"

namespace tidepool {

LayerPasses::LayerPasses(const Program& program, std::span<const Bytes> load) {
  find_phases(program, load);
  const auto layers = static_cast<std::int32_t>(program.layers.size());
  for (OpId id = 0; id < static_cast<OpId>(program.ops.size()); ++id) {
    const Op& op = program.ops[at(id)];
    if (op.place == OpPlace::host) {
      pass_of_op_.push_back(kNone);
      continue;
    }
    const std::int32_t layer = op.layer != kNone ? op.layer : layers + id;
    const Phase phase = phase_of_op_[at(id)];
    const bool goes_on = !passes_.empty() && passes_.back().layer == layer &&
                         passes_.back().phase == phase && passes_.back().round == op.round;
    if (!goes_on) passes_.push_back({layer, phase, op.round, id, id});
    passes_.back().last = id;
    pass_of_op_.push_back(static_cast<std::int32_t>(passes_.size()) - 1);
  }
}

void LayerPasses::find_phases(const Program& program, std::span<const Bytes> load) {
  std::map<std::int32_t, OpId> peak;  // per round
  for (OpId id = 0; id < static_cast<OpId>(program.ops.size()); ++id) {
    const std::int32_t round = program.ops[at(id)].round;
    const auto found = peak.try_emplace(round, id).first;
    if (load[at(id)] > load[at(found->second)]) found->second = id;
  }
  const bool says = std::any_of(program.ops.begin(), program.ops.end(),
                                [](const Op& op) { return op.phase != Phase::other; });
  for (OpId id = 0; id < static_cast<OpId>(program.ops.size()); ++id) {
    const Op& op = program.ops[at(id)];
    const Phase read = id <= peak[op.round] ? Phase::forward : Phase::backward;
    phase_of_op_.push_back(says ? op.phase : read);
  }
}

}  // namespace tidepool
