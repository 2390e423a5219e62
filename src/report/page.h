// The page that report_html fills in: page.html, made part of the program by the build.
#pragma once

#include <string_view>

namespace tidepool {

/// With the marks {{title}}, {{colours}} and {{data}}, once each.
extern const std::string_view kReportPage;

}  // namespace tidepool
