// A plan in the Trace Event Format that Perfetto and Chrome open: one track a stream, stalls on a
// track of their own below the compute stream, counters for the load. Times there are
// microseconds.
#pragma once

#include "report/timeline.h"

namespace tidepool {

std::string report_perfetto(const PlanFile& file, const PlanTimeline& timeline);

}  // namespace tidepool
