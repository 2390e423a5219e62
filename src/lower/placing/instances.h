// Instances: which stretches of a timeline need bytes, and what begins and ends each. The input of
// address assignment, and the map from ops and copies to placements.
#pragma once

#include <span>
#include <vector>

#include "base/id.h"
#include "lower/evaluate.h"

namespace tidepool {

using InstanceId = Id<struct InstanceTag>;

/// One life of a tensor, or one op's workspace. Every access to its
/// bytes happens after its begin step started and before its end step is over.
struct Instance {
  TensorId tensor = kNone;  ///< kNone: workspace
  SpaceId space = 0;
  bool always = false;     ///< lives through every iteration: conflicts with everything
  std::int32_t begin = 0;  ///< step that first writes the bytes
  std::int32_t end = 0;    ///< last step that uses them
  bool crosses = false;    ///< the end step is the next iteration's
  Bytes bytes = 0;
  Bytes fixed_offset = -1;  ///< where the strategy wants it, or -1
};

/// Instance i is life i of the expansion; the workspaces of calls follow.
struct Instances {
  std::vector<Instance> all;
  std::vector<InstanceId> workspace;  ///< per call, or kNone
};

/// `steps` is the evaluator's list for `expansion`. Bytes are the tensors' own, not rounded.
Instances find_instances(const Program& program, const Strategy& strategy,
                         const Expansion& expansion, std::span<const Step> steps);

}  // namespace tidepool
