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

std::string worth_of_choosing(Nanos unlimited, Nanos fastest) {
  constexpr double kLittle = 0.01;
  const double saved = 1 - to_seconds(fastest) / to_seconds(unlimited);
  if (unlimited == Nanos{0} || saved < kLittle) return {};
  return fmt::format(
      "the fastest algorithms take {} without a budget, {:.0f} % less: --algorithms "
      "auto lets planners choose, which changes last bits",
      format_time(fastest), 100 * saved);
}

}  // namespace tidepool::cli
