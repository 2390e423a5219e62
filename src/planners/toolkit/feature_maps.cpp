#include "planners/toolkit/feature_maps.h"

#include "base/at.h"

namespace tidepool {

std::vector<FeatureMap> feature_maps(const Program& program, const AccessIndex& index,
                                     const LayerPasses& passes) {
  std::vector<FeatureMap> maps;
  for (TensorId t = 0; t < static_cast<TensorId>(program.tensors.size()); ++t) {
    if (program.tensors[at(t)].persistent) continue;
    const auto accesses = index.accesses(t);
    const auto gaps = index.gaps(t);
    OpId maker = kNone;
    for (std::size_t i = 0; i < gaps.size(); ++i) {
      if (accesses[i].version_written != kNone) maker = accesses[i].op;
      const bool made_forwards =
          program.ops[at(maker)].place == OpPlace::host || passes.phase_of(maker) == Phase::forward;
      const bool turns = gaps[i].kind == GapKind::device && !gaps[i].dead &&
                         passes.phase_of(gaps[i].from) != Phase::backward &&
                         passes.phase_of(gaps[i].to) == Phase::backward;
      if (made_forwards && turns)
        maps.push_back({index.first_gap(t) + static_cast<GapId>(i), maker});
    }
  }
  return maps;
}

}  // namespace tidepool
