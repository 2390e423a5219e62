// join_tiers: a plan for a device and its host and one for host and file become one plan for all
// three. See Note [Three tiers] in host_program.h.
#pragma once

#include "lower/host_program.h"
#include "lower/scripted.h"

namespace tidepool {

/// All outlive the call.
struct TwoPlans {
  const Program& program;
  const Plan& upper;        ///< of `program`, for device and host
  const HostProgram& host;  ///< of `upper`
  const Plan& lower;        ///< of `host.program`, for `host_and_file(machine)`
  const Machine& machine;   ///< of all three
};

/// The instructions of the upper plan with their waits, but for those by which bytes of the host
/// are handed on, and the copies of the lower one. Not proved.
Result<Plan> join_tiers(const TwoPlans& plans);

}  // namespace tidepool
