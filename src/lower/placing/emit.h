// emit: the last pass of `lower`. Steps, instances and addresses become a Plan: the steady
// schedule, the entry that brings persistent tensors to where an iteration expects them, and the
// exit that hands their final values back.
#pragma once

#include <span>

#include "lower/placing/instances.h"
#include "schedule/schedule.h"

namespace tidepool {

struct EmitInput {
  const Program& program;
  const Strategy& strategy;
  const Expansion& expansion;
  const Instances& instances;
  std::span<const Step> steps;
  std::span<const Bytes> offsets;  ///< per instance
  const StreamTable& streams;
  /// One for each space of the machine, as the steady state needs them. Entry and exit may need
  /// more of the host for staging.
  std::vector<Arena> arenas;
};

Plan emit_plan(const EmitInput& input);

}  // namespace tidepool
