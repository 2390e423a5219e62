#include "report/report_format.h"

#include "report/report_html.h"
#include "report/report_perfetto.h"
#include "report/report_svg.h"

namespace tidepool {

std::span<const ReportFormat> report_formats() {
  static constexpr ReportFormat kFormats[] = {
      {"html", "a page for a browser, to zoom and point at; needs no network", true, report_html},
      {"perfetto", "a trace of streams and memory in use, for ui.perfetto.dev or chrome://tracing",
       false, report_perfetto},
      {"svg", "a picture without scripts", true, report_svg},
  };
  return kFormats;
}

}  // namespace tidepool
