// Which pages of its arenas a plan needs between its phases, so that no more memory is taken at any
// time than the steady state takes.
#pragma once

#include "device/device.h"
#include "schedule/schedule.h"

namespace tidepool {

/// Gives back the arenas of these spaces but for the values that lie there between iterations.
/// Nothing is in flight.
void discard_between_iterations(const Plan& plan, SpaceKind kind, Device& device);

/// Takes the arenas of all devices, as far as the plan uses them.
void populate_devices(const Plan& plan, Device& device);

}  // namespace tidepool
