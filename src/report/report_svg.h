// A plan as a static picture: load, memory map and streams over one time axis. What a rectangle
// stands for is its <title>.
#pragma once

#include "report/timeline.h"

namespace tidepool {

std::string report_svg(const PlanFile& file, const PlanTimeline& timeline);

}  // namespace tidepool
