// A plan as a self-contained page: load, memory map and streams over one time axis.
#pragma once

#include "report/timeline.h"

namespace tidepool {

std::string report_html(const PlanFile& file, const PlanTimeline& timeline);

}  // namespace tidepool
