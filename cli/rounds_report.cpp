#include "rounds_report.h"

#include <fmt/format.h>

#include "base/counted.h"
#include "base/json.h"

namespace tidepool::cli {

void add_to(Json& out, const RoundsOfPlan& r) {
  out["sub_batch"] = r.sub_batch;
  out["rounds"] = r.rounds;
  out["sub_batch_chosen"] = r.chosen;
  out["round_statistics"] = r.statistics;
  out["whole_batch_unlimited_ms"] = r.whole ? Json(to_ms(*r.whole)) : Json(nullptr);
}

std::string text_of(const RoundsOfPlan& r) {
  if (r.kept_whole) {
    return "1, the whole batch: batch norm takes its statistics over it (--sub-batch-statistics "
           "allows others)";
  }
  if (r.rounds == 1 && !r.chosen) return {};
  std::string said = r.rounds == 1
                         ? r.of_part ? "1, a device's whole part" : "1, the whole batch"
                         : fmt::format("{} of {}", r.rounds, counted(r.sub_batch, "sample"));
  if (r.chosen) said += ", chosen by the planner";
  if (r.whole && r.rounds > 1) {
    said += fmt::format("; the whole batch at once would take {} without a budget",
                        format_time(*r.whole));
  }
  return said;
}

std::string warning_of(const RoundsOfPlan& r) {
  if (!r.statistics) return {};
  return fmt::format("batch norm takes its statistics over {}{}, which changes training",
                     r.of_part && r.rounds == 1 ? "a device's part, " : "rounds of ",
                     counted(r.sub_batch, "sample"));
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
