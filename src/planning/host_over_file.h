// The second planning of three tiers: host memory over the file behind it, of a plan that takes
// more of the host than there is. See Note [Three tiers] in lower/host_program.h. Private to
// make_plan.
//
// The first plan is made in any host budget; where the host is enough it stays as it is. Otherwise
// AutoSwap plans what it does with the host, and `tide` too where copies with the file cost time.
#pragma once

#include "planners/planner.h"

namespace tidepool {

/// `upper`, a proved plan in any host budget, inside `budget`: what the host cannot hold waits in
/// the file. `machine` has a file behind its host. Not proved. Fails with `infeasible` where even
/// that cannot be, naming the smallest host budget that would do for this plan.
Result<Lowered> with_host_over_file(const Program& program, const Lowered& upper,
                                    const Machine& machine, const Budget& budget,
                                    const PlannerOptions& options);

}  // namespace tidepool
