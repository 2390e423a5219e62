// Links of one device that share a bus. How long a copy takes there depends on those beside it,
// which only the simulator can tell; plans are made so that it does not matter.
#pragma once

#include "cost/machine.h"

namespace tidepool {

/// As plans of one device count on it: copies over links that share a bus take turns there, none
/// faster than the bus. Machines of several devices stay as they are. On the machine as it is such
/// a plan then takes the time it is planned with.
Machine with_turns_on_buses(const Machine& machine);

}  // namespace tidepool
