// What moDNN generates: its schedule as a script, with addresses away from the device.
//
// Bytes on the host, or in the file, come from a memory manager too: a value has bytes there from
// the copy or host op that brings it to the last that takes it; what lives there between iterations
// has an address of its own at the bottom.
#pragma once

#include "lower/scripted.h"
#include "lower/step.h"
#include "planners/published/modnn/scheduler.h"

namespace tidepool::modnn {

/// `schedule` is complete.
Script write_script(const Program& program, const Machine& machine, const DataSchedule& schedule,
                    bool one_data_stream);

}  // namespace tidepool::modnn
