#include "rounds_report.h"

#include <fmt/format.h>

#include "base/counted.h"
#include "base/json.h"

namespace tidepool::cli {

void RoundsReport::add_to(Json& out) const {
  out["sub_batch"] = sub_batch;
  out["rounds"] = rounds;
  out["sub_batch_chosen"] = chosen;
  out["round_statistics"] = statistics;
  out["whole_batch_unlimited_ms"] = whole ? Json(to_ms(*whole)) : Json(nullptr);
}

std::string RoundsReport::text() const {
  if (kept_whole) {
    return "1, the whole batch: batch norm takes its statistics over it (--sub-batch-statistics "
           "allows others)";
  }
  if (rounds == 1 && !chosen) return {};
  std::string said = rounds == 1 ? of_part ? "1, a device's whole part" : "1, the whole batch"
                                 : fmt::format("{} of {}", rounds, counted(sub_batch, "sample"));
  if (chosen) said += ", chosen by the planner";
  if (whole && rounds > 1) {
    said += fmt::format("; the whole batch at once would take {} without a budget",
                        format_time(*whole));
  }
  return said;
}

std::string RoundsReport::warning() const {
  if (!statistics) return {};
  return fmt::format("batch norm takes its statistics over {}{}, which changes training",
                     of_part && rounds == 1 ? "a device's part, " : "rounds of ",
                     counted(sub_batch, "sample"));
}

}  // namespace tidepool::cli
