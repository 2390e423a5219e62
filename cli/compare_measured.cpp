#include "compare_measured.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/json.h"
#include "base/quantity.h"
#include "context.h"
#include "job/device_kind.h"
#include "terminal.h"
#include "train/measured_plans.h"

namespace tidepool::cli {
namespace {

double prediction_error(const ComparisonRow& r) { return to_ms(r.time) / to_ms(r.measured) - 1; }

}  // namespace

void add_measured(Json& json, const ComparisonRow& r) {
  const bool measured = r.measured_iterations > 0;
  json["measured_ms"] = measured ? Json(to_ms(r.measured)) : Json(nullptr);
  json["least_measured_ms"] = measured ? Json(to_ms(r.least_measured)) : Json(nullptr);
  json["most_measured_ms"] = measured ? Json(to_ms(r.most_measured)) : Json(nullptr);
  json["measured_iterations"] = r.measured_iterations;
  json["prediction_error"] = measured ? Json(prediction_error(r)) : Json(nullptr);
}

Result<void> check_measurable(const SubjectSpec& s) {
  const auto refuse = [](const std::string& what) {
    return fail(ErrorCode::usage, "--measure runs the plans on this device: " + what);
  };
  if (device_kinds().empty()) return refuse("this build has none");
  for (const auto& [name, value] : {std::pair("--machine", s.machine),
                                    {"--program", s.program},
                                    {"--profile", s.profile},
                                    {"--trace", s.trace.file}}) {
    if (!value.empty()) return refuse(fmt::format("leave out {} and give a model", name));
  }
  return {};
}

Result<void> measure_rows(const JobSpec& asked, const Subject& subject, Comparisons& all,
                          Observer& observer) {
  const std::int64_t sub_batch = subject.profile.program.sub_batch;
  std::vector<ComparisonRow*> rows;
  std::vector<const Plan*> plans;
  for (ComparisonRow& row : all.rows) {
    if (!row.plan || row.rounds.sub_batch != sub_batch) continue;
    rows.push_back(&row);
    plans.push_back(row.plan.get());
  }
  JobSpec job = asked;
  job.sub_batch = sub_batch;
  job.choose_sub_batch = false;
  const auto measured =
      measure_plans(job, subject.profile.machine, plans, subject.memory, observer);
  if (!measured) return fail(measured.error());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const MeasuredPlan& found = (*measured)[i];
    rows[i]->measured = found.time;
    rows[i]->least_measured = found.least;
    rows[i]->most_measured = found.most;
    rows[i]->measured_iterations = found.iterations;
    rows[i]->has_room = found.has_room;
  }
  if (observer.stop_requested() && !all.ended) {
    all.ended = Error{ErrorCode::interrupted, "interrupted while the plans were measured", {}};
  }
  return {};
}

std::string other_than_predicted(const std::vector<ComparisonRow>& rows) {
  std::map<Bytes, std::vector<const ComparisonRow*>> by_budget;
  for (const ComparisonRow& r : rows) {
    if (r.measured_iterations > 0) by_budget[r.budget + r.resident].push_back(&r);
  }
  std::string lines;
  for (const auto& [budget, measured] : by_budget) {
    const auto by = [&](Nanos ComparisonRow::*time) {
      return *std::ranges::min_element(measured, {},
                                       [time](const ComparisonRow* r) { return r->*time; });
    };
    const ComparisonRow& predicted = *by(&ComparisonRow::time);
    const ComparisonRow& fastest = *by(&ComparisonRow::measured);
    if (fastest.measured >= predicted.least_measured) continue;
    lines += fmt::format("in {} {} was the fastest, not {} as predicted\n", format_bytes(budget),
                         fastest.planner, predicted.planner);
  }
  if (lines.empty()) return "";
  return lines + "`tidepool train` tries several plans and keeps the one that is fastest there\n";
}

void print_measured(const std::vector<ComparisonRow>& rows, std::size_t width) {
  if (std::ranges::none_of(rows, &ComparisonRow::feasible)) return;
  say("measured on this device, in turn, medians:\n  {:>11}  {:{}} {:>12} {:>12} {:>12} {:>12} "
      "{:>10} {:>11}\n",
      "budget", "planner", width, "predicted", "measured", "least", "most", "off by", "iterations");
  for (const ComparisonRow& r : rows) {
    if (!r.feasible()) continue;
    const std::string budget = format_bytes(r.budget + r.resident);
    if (r.measured_iterations == 0) {
      say("  {:>11}  {:{}} {:>12} not measured{}\n", budget, r.planner, width, format_time(r.time),
          !r.has_room                              ? ": no room for it beside the other plans"
          : r.rounds.chosen && r.rounds.rounds > 1 ? ": it is in other rounds"
                                                   : "");
      continue;
    }
    say("  {:>11}  {:{}} {:>12} {:>12} {:>12} {:>12} {:>8.1f} % {:>11}\n", budget, r.planner, width,
        format_time(r.time), format_time(r.measured), format_time(r.least_measured),
        format_time(r.most_measured), 100 * prediction_error(r), r.measured_iterations);
  }
  say("{}", other_than_predicted(rows));
}

}  // namespace tidepool::cli
