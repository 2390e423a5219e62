#include "compare_measured.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/json.h"
#include "base/quantity.h"
#include "context.h"
#include "job/device_kind.h"
#include "lower/overhead.h"
#include "measured_json.h"
#include "planners/registry.h"
#include "terminal.h"
#include "train/measured_plans.h"
#include "train/plan_by_times.h"

namespace tidepool::cli {
namespace {

/// The planner that plans by what was measured.
constexpr const char* kCorrecting = "auto";

MeasuredShare prediction_error(const ComparisonRow& r) { return measured_error(r.time, r.spread); }

Bytes device_bytes(const ComparedBudget& entry) { return entry.budget.device; }

void set_measured(ComparisonRow& row, const MeasuredPlan& found) {
  row.measured = found.time;
  row.least_measured = found.least;
  row.most_measured = found.most;
  row.spread = found.spread;
  row.measured_iterations = found.iterations;
  row.has_room = found.has_room;
}

void print_measured_row(const ComparisonRow& r, const std::string& name, std::size_t width) {
  const std::string budget = format_bytes(r.budget + r.resident);
  if (r.measured_iterations == 0) {
    say("  {:>11}  {:{}} {:>12} not measured{}\n", budget, name, width, format_time(r.time),
        !r.has_room                              ? ": no room for it beside the other plans"
        : r.rounds.chosen && r.rounds.rounds > 1 ? ": it is in other rounds"
                                                 : "");
    return;
  }
  say("  {:>11}  {:{}} {:>12} {:>12} {:>12} {:>12} {:>11}  {}\n", budget, name, width,
      format_time(r.time), format_time(r.measured), format_time(r.least_measured),
      format_time(r.most_measured), r.measured_iterations, prediction_error(r).text());
}

}  // namespace

void add_measured(Json& json, const ComparisonRow& r) {
  const bool measured = r.measured_iterations > 0;
  json["measured_ms"] = measured ? Json(to_ms(r.measured)) : Json(nullptr);
  json["least_measured_ms"] = measured ? Json(to_ms(r.least_measured)) : Json(nullptr);
  json["most_measured_ms"] = measured ? Json(to_ms(r.most_measured)) : Json(nullptr);
  json["measured_iterations"] = r.measured_iterations;
  add_share(json, "prediction_error", measured ? std::optional(prediction_error(r)) : std::nullopt);
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

Result<std::vector<CorrectedRow>> measure_rows(const JobSpec& asked, const Subject& subject,
                                               const std::vector<ComparedBudget>& entries,
                                               PlannerOptions options, Comparisons& all,
                                               Observer& observer) {
  const std::int64_t sub_batch = subject.profile.program.sub_batch;
  std::vector<ComparisonRow*> rows;
  PlansToMeasure measuring;
  for (ComparisonRow& row : all.rows) {
    if (!row.plan || row.rounds.sub_batch != sub_batch) continue;
    rows.push_back(&row);
    measuring.plans.push_back(row.plan.get());
    const auto entry = std::ranges::find(entries, row.budget, &device_bytes);
    measuring.budgets.push_back(static_cast<std::size_t>(entry - entries.begin()));
  }
  options.may.sub_batch = false;
  options.values = {};  // they are other planners'
  if (options.usual_time) options.time_limit = usual_time_limit(kCorrecting);
  measuring.correct = [&](const TimeModel& now, std::size_t fastest) {
    const ComparedBudget& entry = entries[measuring.budgets[fastest]];
    observer.update(1, fmt::format("{} plans by what they took", kCorrecting));
    return plan_by_times(
        **make_planner(kCorrecting),
        {subject.profile.program, now, *measuring.plans[fastest], entry.budget, options});
  };
  JobSpec job = asked;
  job.sub_batch = sub_batch;
  job.choose_sub_batch = false;
  const auto measured = measure_plans(job, subject.profile, measuring, subject.memory, observer);
  if (!measured) return fail(measured.error());
  for (std::size_t i = 0; i < rows.size(); ++i) set_measured(*rows[i], measured->plans[i]);
  std::vector<CorrectedRow> corrected;
  for (const CorrectedPlan& plan : measured->corrected) {
    CorrectedRow& row = corrected.emplace_back(CorrectedRow{{}, *rows[plan.fastest]});
    row.plan.planner = kCorrecting;
    row.plan.budget = row.again.budget;
    row.plan.resident = row.again.resident;
    row.plan.time = plan.predicted;
    set_measured(row.plan, plan.measured);
    set_measured(row.again, plan.again);
  }
  if (observer.stop_requested() && !all.ended) {
    all.ended = Error{ErrorCode::interrupted, "interrupted while the plans were measured", {}};
  }
  return corrected;
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

void print_measured(const std::vector<ComparisonRow>& rows,
                    const std::vector<CorrectedRow>& corrected, std::size_t width) {
  const std::string name = "corrected";
  const auto again = [](const CorrectedRow& r) { return r.again.planner + " again"; };
  width = std::max(width, name.size());
  for (const CorrectedRow& r : corrected) width = std::max(width, again(r).size());
  if (std::ranges::none_of(rows, &ComparisonRow::feasible)) return;
  say("measured on this device, in turn, medians:\n  {:>11}  {:{}} {:>12} {:>12} {:>12} {:>12} "
      "{:>11}  {}\n",
      "budget", "planner", width, "predicted", "measured", "least", "most", "iterations", "off by");
  for (const ComparisonRow& r : rows) {
    if (r.feasible()) print_measured_row(r, r.planner, width);
  }
  for (const CorrectedRow& r : corrected) {
    print_measured_row(r.plan, name, width);
    print_measured_row(r.again, again(r), width);
  }
  if (!corrected.empty()) {
    say("{}: what {} plans by the times that those took, in turn with the fastest\n", name,
        kCorrecting);
  } else if (!interrupted() && std::ranges::any_of(rows, &ComparisonRow::measured_iterations)) {
    say("no {} plan: what {} plans by these times is slower by them, or has no room\n", name,
        kCorrecting);
  }
  say("{}", other_than_predicted(rows));
}

Json corrected_json(const std::vector<CorrectedRow>& corrected) {
  Json list = Json::array();
  const auto to_json = [](const ComparisonRow& row) {
    Json json = {{"planner", row.planner},
                 {"budget_bytes", row.budget + row.resident},
                 {"time_ms", to_ms(row.time)}};
    add_measured(json, row);
    return json;
  };
  for (const CorrectedRow& row : corrected) {
    Json& json = list.emplace_back(to_json(row.plan));
    json["in_turn_with"] = to_json(row.again);
  }
  return list;
}

}  // namespace tidepool::cli
