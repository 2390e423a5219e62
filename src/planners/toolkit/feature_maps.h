// Feature maps: what forward makes and backward reads again, as published planners see a network.
#pragma once

#include <vector>

#include "planners/toolkit/layer_passes.h"

namespace tidepool {

struct FeatureMap {
  GapId gap = kNone;   ///< in which it waits for backward; one in which something is decided
  OpId maker = kNone;  ///< the op that made the value: a forward op, or the host's
};

/// In the order of their gaps. A value that backward reads twice is one map: its first gap.
std::vector<FeatureMap> feature_maps(const Program& program, const AccessIndex& index,
                                     const LayerPasses& passes);

}  // namespace tidepool
