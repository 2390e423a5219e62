#include "planning/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>

#include "base/counted.h"
#include "bound/any_algorithms.h"
#include "cost/spill.h"
#include "lower/overhead.h"
#include "planners/registry.h"
#include "planners/toolkit/wear.h"
#include "planning/learning.h"
#include "planning/make_plan.h"
#include "planning/obtain_plan.h"
#include "planning/planner_work.h"
#include "planning/planning_spec.h"
#include "planning/proven_gap.h"
#include "schedule/plan_totals.h"

namespace tidepool {
namespace {

void set_error(ComparisonRow& row, const Error& error) {
  row.error = error.message;
  row.code = error.code;
  if (!error.of_host) row.smallest = error.smallest_feasible;
}

/// Names a smaller budget that can be met.
bool needs_less(const Error& a, const Error& b) {
  if (!a.smallest_feasible) return false;
  return !b.smallest_feasible || *a.smallest_feasible < *b.smallest_feasible;
}

/// Of rows without a plan, that of the planner that needs least; else the first one's.
Error reason_of(std::span<const ComparisonRow> rows) {
  std::optional<Error> least;
  for (const ComparisonRow& row : rows) {
    Error why{row.code, fmt::format("no plan: {}", row.error), row.smallest};
    if (!least || needs_less(why, *least)) least = std::move(why);
  }
  return *least;
}

Error interrupted_after(std::size_t rows, std::size_t total) {
  return {ErrorCode::interrupted,
          fmt::format("interrupted after {} of {}", rows, counted(total, "plan")), std::nullopt};
}

ComparisonRow row_for(const Subject& subject, const ComparedBudget& entry,
                      const std::string& planner) {
  ComparisonRow row;
  row.resident = subject.resident;
  row.planner = planner;
  row.budget = entry.budget.device;
  return row;
}

PlannerOptions options_for(const std::string& planner, const PlannerSpec& spec,
                           const PlannerOptions& options) {
  PlannerOptions own = options;
  own.time_limit = spec.time_limit.value_or(usual_time_limit(planner));
  own.usual_time = !spec.time_limit;
  return own;
}

struct KnownPlan {
  Bytes budget = 0;
  std::optional<Lowered> plan;
};

/// `known`: this planner's fastest plan of smaller budgets, none before the first. A search begins
/// with it, unless its result is to depend on the seed alone.
ComparisonRow plan_one(const Subject& subject, const ComparedBudget& entry,
                       const OverheadBound& bound, const std::string& name, const PlannerSpec& spec,
                       const PlannerOptions& options, KnownPlan& known) {
  ComparisonRow row = row_for(subject, entry, name);
  const auto work = PlannerWork::make(subject, name, entry.budget);
  if (!work) {
    set_error(row, subject.of_whole(work.error()));
    return row;
  }
  FixedWorkload fixed(work->profile().program);
  PlannerOptions mine = options_for(name, spec, options);
  mine.may.sub_batch = work->chooses();
  const bool begins = begins_with_plans(name) && options.evaluation_limit == 0;
  const bool smaller = begins && known.plan && known.budget < entry.budget.device;
  if (smaller) mine.known = {&*known.plan, 1};
  auto planned = make_plan(work->planner(), work->chooses() ? *work->workload() : fixed,
                           subject.profile.machine, entry.budget, mine);
  if (planned && learns(name)) {
    if (auto written = write_learning(spec.values, *planned); !written) {
      planned = fail(written.error());
    }
  }
  const Result<Profile> profile =
      planned ? work->profile(planned->sub_batch()) : Result<Profile>(fail(planned.error()));
  if (!profile) {
    set_error(row, subject.of_whole(profile.error()));
    return row;
  }
  const Plan& plan = planned->lowered.plan;
  row.from_smaller_budget = smaller &&
                            planned->lowered.iteration_time == known.plan->iteration_time &&
                            plan.device_bytes() == known.plan->plan.device_bytes();
  row.rounds =
      subject.rounds_of(profile->program, subject.terms.best_algorithms(chooses_algorithms(name)));
  row.rounds.chosen = work->chooses();
  row.footprint = plan.device_bytes();
  row.time = planned->lowered.iteration_time;
  row.unlimited = subject.unlimited_time(profile->program, subject.terms.best_algorithms(true));
  row.covered = profile->program.sub_batch == subject.profile.program.sub_batch &&
                (subject.terms.choose_algorithms || bound.covers(planned->lowered.strategy));
  const PlanTotals totals = totals_of(profile->program, plan);
  row.swapped = totals.swapped_out;
  if (may_write_to_file(profile->machine)) row.written = totals.written;
  row.recomputed = totals.recomputed_ops;
  row.plan_time = planned->plan_time;
  row.streaming = planned->lowered.streaming;
  row.plan = std::make_shared<const Plan>(planned->lowered.plan);
  if (begins && (!known.plan || planned->lowered.iteration_time < known.plan->iteration_time)) {
    known = {entry.budget.device, std::move(planned->lowered)};
  }
  return row;
}

/// A plan for less memory is a plan for more: a sweep is never slower with more. Where plans write
/// to a file the one that writes least counts as the best of those that are as fast.
void reuse_smaller(ComparisonRow& row, const std::vector<ComparisonRow>& rows, bool file) {
  std::vector<const ComparisonRow*> smaller;
  Nanos fastest = row.feasible() ? row.time : Nanos::max();
  for (const ComparisonRow& before : rows) {
    const bool of_less = before.planner == row.planner && before.budget < row.budget;
    if (!of_less || !before.feasible()) continue;
    smaller.push_back(&before);
    fastest = std::min(fastest, before.time);
  }
  const Nanos fast_enough = file && !smaller.empty() ? as_fast_as(fastest) : fastest;
  const ComparisonRow* best = row.feasible() && row.time <= fast_enough ? &row : nullptr;
  for (const ComparisonRow* before : smaller) {
    if (before->time > fast_enough) continue;
    if (best == nullptr || (file && *before->written < *best->written)) best = before;
  }
  if (best == nullptr || best == &row) return;
  const Bytes budget = row.budget;
  const Nanos plan_time = row.plan_time;
  row = *best;
  row.budget = budget;
  row.plan_time = plan_time;
  row.from_smaller_budget = true;
}

/// The bound is of rounds of `sub_batch`: it says nothing of a plan in others.
Result<void> set_bound(ComparisonRow& row, const OverheadBound& bound, std::int64_t sub_batch) {
  row.gap.reset();
  row.least.reset();
  row.bound_stopped = bound.fluid.stopped;
  row.bound_by = bound.by;
  row.bound_refused = bound.fluid.refused;
  const bool others = row.feasible() && row.rounds.sub_batch != sub_batch;
  if (!bound.fluid.feasible || others) return {};
  // Nor of one with other algorithms.
  if (row.feasible() && !row.covered) return {};
  // A time of 0 without a budget has no shares.
  if (bound.unlimited == Nanos{0} && row.time != Nanos{0}) return {};
  row.least = bound.least_overhead();
  if (!row.feasible()) return {};
  const auto gap = bound.optimality_gap(row.time);
  if (!gap) return fail(gap.error());
  row.gap = *gap;
  return {};
}

}  // namespace

Result<std::vector<ComparedBudget>> compared_budgets(const std::vector<BudgetSpec>& budgets,
                                                     const Subject& subject) {
  std::vector<ComparedBudget> entries;
  for (const BudgetSpec& spec : budgets) {
    ComparedBudget entry{{subject.device_bytes(spec), 0}, {}, {}};
    for (const bool stated : {true, false}) {
      const auto budget = subject.budget_of(spec, stated);
      if (budget) {
        entry.budget = *budget;
      } else if (budget.error().code != ErrorCode::infeasible) {
        return fail(budget.error());
      } else {
        (stated ? entry.infeasible : entry.of_any_size) = budget.error();
      }
    }
    entries.push_back(std::move(entry));
  }
  std::stable_sort(entries.begin(), entries.end(),
                   [](const ComparedBudget& x, const ComparedBudget& y) {
                     return x.budget.device < y.budget.device;
                   });
  return entries;
}

namespace {

/// Where planners may choose.
AlgorithmChoices choices_of(const Subject& subject) {
  if (!subject.terms.choose_algorithms) return {};
  return more_than_best(subject.profile.program, subject.profile.machine.alignment());
}

}  // namespace

Result<Comparisons> compare_planners(const Subject& subject,
                                     const std::vector<ComparedBudget>& entries,
                                     const std::vector<std::string>& planners,
                                     const PlannerSpec& spec, const PlannerOptions& options,
                                     ProgressSink& progress,
                                     const std::function<void(const ComparisonRow&)>& on_row) {
  const Profile& profile = subject.profile;
  // Where planners may choose: of whatever choice.
  const Program bounded =
      subject.terms.choose_algorithms ? with_best_algorithms(profile.program) : profile.program;
  const auto algorithms = choose_algorithms(bounded, options.algorithms);
  const AlgorithmChoices choices = choices_of(subject);
  const std::size_t total = entries.size() * planners.size();
  Comparisons all;
  std::vector<ComparisonRow>& rows = all.rows;
  all.ended = entries.back().of_any_size;  // the largest
  std::map<std::string, KnownPlan> known;  // by planner
  for (const ComparedBudget& entry : entries) {
    OverheadBound bound;
    const auto done = static_cast<double>(rows.size()) / static_cast<double>(total);
    const std::string size = format_bytes(entry.budget.device + subject.resident);
    if (!entry.infeasible) {
      const auto show = [&] { progress.update(done, fmt::format("bound of {}", size)); };
      show();
      const Stop stop = [&] {  // asked by this thread, again and again
        show();
        return options.stop.requested();
      };
      bound = overhead_bound(
          bounded, profile.machine, algorithms,
          subject.unlimited_time(profile.program, subject.terms.best_algorithms(true)),
          entry.budget, {gap_time_limit(spec), stop}, true, choices);
    }
    for (const std::string& name : planners) {
      progress.update(static_cast<double>(rows.size()) / static_cast<double>(total),
                      fmt::format("{} in {}", name, size));
      const std::optional<Error>& why = entry.of_any_size;
      ComparisonRow row = why ? row_for(subject, entry, name)
                              : plan_one(subject, entry, bound, name, spec, options, known[name]);
      if (why) {
        set_error(row, for_planner(name, *why, subject, options_for(name, spec, options)));
      }
      if (options.stop.requested()) {  // the plan is what it had until then
        all.ended = interrupted_after(rows.size(), total);
        return all;
      }
      if (!why) reuse_smaller(row, rows, leaves_to_file(profile.machine));
      if (auto set = set_bound(row, bound, profile.program.sub_batch); !set) {
        return fail(set.error());
      }
      on_row(row);
      rows.push_back(std::move(row));
    }
  }
  if (!all.ended && std::ranges::none_of(rows, &ComparisonRow::feasible)) {
    all.ended = reason_of(std::span(rows).last(planners.size()));
  }
  return all;
}

}  // namespace tidepool
