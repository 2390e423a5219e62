// tidepool compare: every planner on one job, over one budget or a sweep.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "plan/plan_totals.h"
#include "planners/registry.h"
#include "proven_gap.h"
#include "subject.h"

namespace tidepool::cli {
namespace {

struct CompareArguments {
  SubjectArguments subject;
  BudgetArguments budget;
  std::vector<std::string> budgets{"60%"};
  std::vector<std::string> planners;
};

/// One planner in one budget.
struct Row {
  std::string planner;
  Bytes budget = 0;
  std::string error;   ///< why there is no plan; empty when there is one
  Bytes resident = 0;  ///< of a trace, beside budget and footprint
  Bytes footprint = 0;
  Nanos time{};
  Nanos compute{};       ///< without anything swapped or recomputed
  bool covered = false;  ///< the bound holds for such plans
  std::optional<double> gap;
  Bytes swapped = 0;
  std::int64_t recomputed = 0;
  Nanos plan_time{};
  bool from_smaller_budget = false;

  [[nodiscard]] bool feasible() const { return error.empty(); }
  [[nodiscard]] double overhead() const {
    return static_cast<double>(time.count()) / static_cast<double>(compute.count()) - 1;
  }
};

Row plan_one(const Profile& profile, const Budget& budget, const OverheadBound& bound,
             const std::string& name, const PlannerOptions& options) {
  Row row;
  row.planner = name;
  row.budget = budget.device;
  row.compute = bound.compute;
  FixedWorkload workload(profile.program);
  const auto planner = make_planner(name);
  const auto planned = make_plan(**planner, workload, profile.machine, budget, options);
  if (!planned) {
    row.error = planned.error().message;
    return row;
  }
  const Plan& plan = planned->lowered.plan;
  row.footprint = plan.device_bytes;
  row.time = planned->lowered.iteration_time;
  row.covered = bound.covers(planned->lowered.strategy);
  const PlanTotals totals = totals_of(profile.program, plan);
  row.swapped = totals.swapped_out;
  row.recomputed = totals.recomputed_ops;
  row.plan_time = planned->plan_time;
  return row;
}

Json to_json(const Row& r) {
  Json json = {
      {"planner", r.planner}, {"budget_bytes", r.budget + r.resident}, {"feasible", r.feasible()}};
  if (!r.feasible()) {
    json["error"] = r.error;
    return json;
  }
  json["footprint_bytes"] = r.footprint + r.resident;
  json["time_ms"] = to_ms(r.time);
  json["overhead"] = r.overhead();
  json["gap"] = r.gap ? Json(*r.gap) : Json(nullptr);
  json["swap_bytes"] = r.swapped;
  json["recomputed_ops"] = r.recomputed;
  json["plan_ms"] = to_ms(r.plan_time);
  json["from_smaller_budget"] = r.from_smaller_budget;
  return json;
}

void print_header() {
  fmt::print("  {:>11}  {:10} {:>11} {:>12} {:>10} {:>9} {:>11} {:>10}\n", "budget", "planner",
             "footprint", "time", "overhead", "gap", "swapped", "planned in");
}

void print_row(const Row& r) {
  if (!r.feasible()) {
    fmt::print("  {:>11}  {:10} no plan: {}\n", format_bytes(r.budget + r.resident), r.planner,
               r.error);
  } else {
    fmt::print("  {:>11}  {:10} {:>11} {:>12} {:>8.2f} % {:>9} {:>11} {:>10}{}\n",
               format_bytes(r.budget + r.resident), r.planner,
               format_bytes(r.footprint + r.resident), format_time(r.time), 100 * r.overhead(),
               r.gap ? fmt::format("{:.2f} %", 100 * *r.gap) : "-", format_bytes(r.swapped),
               format_time(r.plan_time),
               r.from_smaller_budget ? "  (plan of a smaller budget)" : "");
  }
  std::fflush(stdout);
}

Result<std::vector<Budget>> budgets_of(const CompareArguments& a, const Subject& subject) {
  std::vector<Budget> budgets;
  for (const std::string& text : a.budgets) {
    BudgetArguments one = a.budget;
    one.device = text;
    const auto budget = budget_of(one, subject);
    if (!budget) return fail(budget.error());
    budgets.push_back(*budget);
  }
  std::sort(budgets.begin(), budgets.end(),
            [](const Budget& x, const Budget& y) { return x.device < y.device; });
  return budgets;
}

Result<int> compare(CompareArguments a, bool json) {
  if (a.planners.empty()) {
    for (const PlannerInfo& info : planner_list()) a.planners.emplace_back(info.name);
  }
  for (const std::string& name : a.planners) {
    if (auto known = make_planner(name); !known) return fail(known.error());
  }
  a.budget.device = *std::min_element(a.budgets.begin(), a.budgets.end());
  const auto subject = subject_of(a.subject, a.budget);
  if (!subject) return fail(subject.error());
  const Profile& profile = subject->profile;
  const auto budgets = budgets_of(a, *subject);
  if (!budgets) return fail(budgets.error());
  PlannerOptions options = planner_options(a.subject.job, a.budget);
  const auto algorithms = choose_algorithms(profile.program, options.algorithms);
  const Nanos compute = compute_time(profile.program, options.algorithms);

  if (!json) {
    fmt::print("{} on {}, unlimited peak {}, {} an iteration\n", profile.program.name,
               profile.machine.name,
               format_bytes(unlimited_peak(profile.program, profile.machine.alignment) +
                            subject->resident),
               format_time(compute));
    print_header();
  }
  TerminalProgress progress;
  std::vector<Row> rows;
  const auto total = static_cast<double>(budgets->size() * a.planners.size());
  for (const Budget& budget : *budgets) {
    const OverheadBound bound =
        overhead_bound(profile.program, profile.machine, algorithms, budget.device,
                       {options.time_limit, options.cancelled});
    for (const std::string& name : a.planners) {
      if (interrupted()) {
        return fail(ErrorCode::interrupted, fmt::format("interrupted after {} of {} plans",
                                                        rows.size(), static_cast<int>(total)));
      }
      progress.update(static_cast<double>(rows.size()) / total,
                      fmt::format("{} in {}", name, format_bytes(budget.device)));
      Row row = plan_one(profile, budget, bound, name, options);
      row.resident = subject->resident;
      // A plan for less memory is a plan for more: a sweep is never slower with more.
      for (const Row& before : rows) {
        if (before.planner != name || !before.feasible()) continue;
        if (row.feasible() && row.time <= before.time) continue;
        const Nanos plan_time = row.plan_time;
        row = before;
        row.budget = budget.device;
        row.plan_time = plan_time;
        row.from_smaller_budget = true;
      }
      row.gap.reset();
      if (row.feasible() && row.covered && bound.fluid.feasible) {
        const auto gap = bound.gap(row.time);
        if (!gap) return fail(gap.error());
        row.gap = *gap;
      }
      if (!json) print_row(row);
      rows.push_back(std::move(row));
    }
  }
  if (json) {
    Json list = Json::array();
    for (const Row& row : rows) list.push_back(to_json(row));
    print({{"schema", 1},
           {"program", profile.program.name},
           {"machine", profile.machine.name},
           {"compute_ms", to_ms(compute)},
           {"rows", std::move(list)}});
  }
  return kOk;
}

}  // namespace

void add_compare(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<CompareArguments>();
  CLI::App* command =
      app.add_subcommand("compare", "plan one job with several planners and compare the plans");
  add_subject_options(*command, arguments->subject);
  command
      ->add_option("--budget,--sweep", arguments->budgets,
                   "one or several budgets, such as 60% or 30%,40%,50%")
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("--planners", arguments->planners, "names (default: all)")->delimiter(',');
  add_time_limit_option(*command, arguments->budget);
  command->add_flag("--json", context.json, "one JSON object on stdout");
  command->footer(R"(
overhead is over the time without a budget; gap is how far above the fluid lower bound the plan may
be, - where no bound is known: the plan recomputes or runs other algorithms than the rest, or the
time limit was up before.

Examples:
  tidepool compare vgg16 --machine gtx1080ti --budget 50%
  tidepool compare vgg16 --machine gtx1080ti --sweep 30%,40%,50%,60% --planners autoswap,tide --json)");
  command->callback([arguments, &context] {
    context.run = [arguments, &context] {
      catch_interrupts();
      auto code = compare(*arguments, context.json);
      return code ? *code : report(code.error(), context.json);
    };
  });
}

}  // namespace tidepool::cli
