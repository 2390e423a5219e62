// emit: the last pass of `lower`. Steps, instances and addresses become a Plan: the steady
// schedule, the entry that brings persistent tensors to where an iteration expects them, and the
// exit that hands their final values back.
#pragma once

#include <span>

#include "lower/instances.h"
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
  Bytes alignment = 0;
  Bytes device_bytes = 0;
  Bytes host_bytes = 0;  ///< of the steady state; entry and exit may need more for staging
};

Plan emit_plan(const EmitInput& input);

}  // namespace tidepool
