// Instances: which stretches of a timeline need bytes, and what begins and ends each. The input of
// address assignment, and the map from ops and copies to placements.
#pragma once

#include <span>
#include <vector>

#include "plan/evaluate.h"

namespace tidepool {

using InstanceId = std::int32_t;

/// One stay of a tensor (or one op's workspace) on the device or on the host. Every access to its
/// bytes happens after its begin step started and before its end step is over.
struct Instance {
  TensorId tensor = kNone;  ///< kNone: workspace
  bool on_host = false;
  bool always = false;      ///< lives through every iteration: conflicts with everything
  std::int32_t begin = 0;   ///< step that first writes the bytes
  std::int32_t end = 0;     ///< last step that uses them
  bool crosses = false;     ///< the end step is the next iteration's
  Bytes bytes = 0;
};

struct Instances {
  std::vector<Instance> all;
  std::vector<std::vector<InstanceId>> op_operands;  ///< per op, per access
  std::vector<InstanceId> op_workspace;              ///< per op, or kNone
  /// Per gap: source and target of its copies. Swap: device -> host -> device. Upload: host ->
  /// device. Download: device -> host.
  std::vector<InstanceId> gap_before;
  std::vector<InstanceId> gap_host;
  std::vector<InstanceId> gap_after;
  /// Per tensor: where a persistent tensor's value lies between iterations; kNone otherwise.
  std::vector<InstanceId> boundary;
};

/// `steps` is an evaluator's list for `strategy`. Instance bytes are the tensors' own, not rounded.
Instances find_instances(const Program& program, const AccessIndex& index,
                         const Strategy& strategy, std::span<const Step> steps);

}  // namespace tidepool
