// simulate_on_buses: simulate for machines whose links share buses. How long a copy takes then
// depends on the copies that run beside it, earlier and later ones, so that instructions cannot be
// walked in their order: what happens next does.
//
// Note [Shared buses]. A copy first takes the latency of its link, and nothing of the bus. Then it
// has the same part of its bus as each of the other copies there, and no more than its link's own
// speed; what it leaves of its part nobody takes. Whenever a copy joins or leaves a bus, the rest
// of the others' bytes goes on at the new speed. A copy that is alone takes exactly what the link
// says.
#pragma once

#include "sim/simulate.h"

namespace tidepool {

/// The same promises as `simulate`. Times are whole nanoseconds, each end rounded up.
Simulation simulate_on_buses(const Program& program, const Plan& plan, const Machine& machine,
                             int iterations, const Guards& guards = {});

/// The mean of the last iterations of some dozen; `steady` where the last ones took the same time,
/// to a microsecond.
LongRun long_run_on_buses(const Program& program, const Plan& plan, const Machine& machine);

}  // namespace tidepool
