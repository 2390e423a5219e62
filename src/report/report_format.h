// The forms in which a plan can be shown. A new one is a header and a source of its own and one
// line in the list.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "report/timeline.h"

namespace tidepool {

struct ReportFormat {
  std::string_view name;
  std::string_view summary;
  bool addresses;  ///< whether it shows where tensors lie, not streams and memory in use alone
  /// The whole document. The plan must be proved, the timeline be its own.
  std::string (*render)(const PlanFile& file, const PlanTimeline& timeline);
};

std::span<const ReportFormat> report_formats();

}  // namespace tidepool
