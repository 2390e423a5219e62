// tidepool bound: how little memory and time swapping and recomputation could do with, at best.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>

#include "base/json.h"
#include "context.h"
#include "file_tier_options.h"
#include "lower/overhead.h"
#include "option_names.h"
#include "planning/bounds.h"
#include "subject_options.h"
#include "terminal_observer.h"

namespace tidepool::cli {
namespace {

struct BoundArguments {
  SubjectSpec subject;
  BudgetSpec budget{.device = {.bytes = 0, .percent = 100}};
  std::string plan;
  Nanos time_limit = std::chrono::minutes(1);
};

Json json_of(const std::string& name, const std::string& machine, const Bounds& b) {
  const OverheadBound& bound = b.overhead;
  const bool known = b.unknown.empty();
  const bool refused = !bound.fluid.refused.empty();
  const bool load_known = !b.least_load.stopped && !refused;
  Json out = {
      {"schema", 1},
      {"program", name},
      {"machine", machine},
      {"budget_bytes", b.budget.device},
      {"host_budget_bytes", b.budget.host > 0 ? Json(b.budget.host) : Json(nullptr)},
      {"unlimited_peak_bytes", b.peak},
      {"compute_ms", to_ms(bound.compute)},
      {"unlimited_ms", refused ? Json(nullptr) : Json(to_ms(bound.unlimited))},
      {"least_overhead_ms", known ? Json(to_ms(b.recomputing.fluid.overhead)) : Json(nullptr)},
      {"least_overhead", known ? Json(b.recomputing.least_overhead()) : Json(nullptr)},
      {"least_overhead_swapping", known ? Json(bound.least_overhead()) : Json(nullptr)},
      {"least_load_without_overhead_bytes", load_known ? Json(b.least_load.bytes) : Json(nullptr)},
      {"ms", to_ms(b.took)}};
  out["bound"] = known ? Json(to_string(b.weaker())) : Json(nullptr);
  add_missing_bound(out, bound.fluid.stopped || b.least_load.stopped, bound.fluid.refused);
  if (b.plan_time) {
    out["plan_overhead"] = overhead(*b.plan_time, bound.unlimited);
    out["optimality_gap"] = b.gap;
  }
  return out;
}

void print_bounds(const std::string& name, const std::string& machine, const Bounds& b) {
  const OverheadBound& bound = b.overhead;
  const Nanos unlimited = bound.unlimited;
  if (const std::string& refused = bound.fluid.refused; !refused.empty()) {
    return say("{} on {}: bounds are not known: {}\n", name, machine, with_option_names(refused));
  }
  say("{} on {}: no schedule with the ops in their order does better (fluid relaxation)\n", name,
      machine);
  if (b.budget.host > 0) {
    say("  host memory     {}: what lies in it and, behind it, in a file counts\n",
        format_bytes(b.budget.host));
  }
  if (b.unknown.empty()) {
    say("  in {:12} keeping and swapping takes at least {} an iteration, without a budget {}: "
        "overhead {:.2f} %\n",
        format_bytes(b.budget.device), format_time(bound.least_time()), format_time(unlimited),
        100 * bound.least_overhead());
    say("  {:15} recomputing as well, at least {}: overhead {:.2f} %\n", "",
        format_time(b.recomputing.least_time()), 100 * b.recomputing.least_overhead());
    for (const OverheadBound* one : {&bound, &b.recomputing}) {
      if (one->by == BoundBy::fluid) continue;
      say("  {:15} {}: {}\n", "", one == &bound ? "swapping" : "recomputing as well",
          with_option_names(said_of(one->by, one->fluid.stopped)));
    }
  } else {
    say("  in {:12} not known: {}\n", format_bytes(b.budget.device), with_option_names(b.unknown));
  }
  if (!b.least_load.stopped) {
    say("  no overhead     swapping needs a load of at least {} ({:.1f} % of the peak, {})\n",
        format_bytes(b.least_load.bytes),
        100 * static_cast<double>(b.least_load.bytes) / static_cast<double>(b.peak),
        format_bytes(b.peak));
  } else {
    say("  no overhead     not known: no time was left (--time-limit)\n");
  }
  if (b.plan_time) {
    say("  this plan       {}: overhead {:.2f} %, optimality gap {:.2f} %\n",
        format_time(*b.plan_time), 100 * overhead(*b.plan_time, unlimited), 100 * b.gap);
  }
  if (b.not_covered) {
    say("  this plan       reorders ops: the bounds say nothing about it\n");
  }
  say("  solved in {}\n", format_time(b.took));
}

void show(const std::string& name, const std::string& machine, const Bounds& b, bool json) {
  json ? print(json_of(name, machine, b)) : print_bounds(name, machine, b);
}

Result<int> bound(const BoundArguments& a, bool json) {
  if (auto stated = check_sub_batch_is_stated(a.subject.job, "bound"); !stated) {
    return fail(stated.error());
  }
  const SubjectSpec& of = a.subject;
  const std::string named = of.machine + of.trace.file;
  if (auto tier = check_file_tier(of.job.device.file_tier, named, 1); !tier)
    return fail(tier.error());
  TerminalObserver observer;
  if (!a.plan.empty()) {
    const auto saved = read_saved_plan(a.plan);
    if (!saved) return fail(saved.error());
    const auto bounds = bounds_of(*saved, a.time_limit, observer);
    if (!bounds) return fail(bounds.error());
    show(saved->file.program.name, saved->file.machine.name, *bounds, json);
    return kOk;
  }
  const Cache cache(a.subject.cache, observer);
  const auto subject = subject_of(a.subject, a.budget, cache, observer);
  if (!subject) return fail(subject.error());
  const auto bounds = bounds_of(*subject, a.budget, a.time_limit, observer);
  if (!bounds) return fail(bounds.error());
  show(subject->profile.program.name, subject->profile.machine.name, *bounds, json);
  return kOk;
}

}  // namespace

void add_bound(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<BoundArguments>();
  CLI::App* command = app.add_subcommand(
      "bound", "prove how little overhead a budget can cost, and how close a plan is");
  add_subject_options(*command, arguments->subject);
  state_sub_batch(*command);
  add_size_option(*command, "--budget", arguments->budget.device,
                  "device bytes: 400MiB, 2GB, or a percentage of the unlimited peak such as 60%");
  add_host_budget_option(*command, arguments->budget);
  add_file_tier_options(*command, arguments->subject.job.device.file_tier);
  command->add_option("--plan", arguments->plan, "a saved plan, for its program and budget")
      ->excludes("model");
  add_duration_option(
      *command, "--time-limit", arguments->time_limit,
      "for its linear programs: 500ms, 10s, 2min (default: 1min); what takes longer gets a "
      "weaker bound, of some ops or of the one that needs most memory");
  command->add_flag("--json", context.json, "one JSON object on stdout");
  auto ignored = ignored_by_subjects();
  ignored.push_back({"--plan",
                     {"--budget", "--host-budget", "--file-tier", "--file-limit", "--machine",
                      "--profile", "--trace", "--batch", "--algorithms"}});
  refuse_ignored(*command, std::move(ignored));
  command->footer(R"(
Percentages are of the time of an iteration without a budget. The optimality gap is what a plan's
overhead may be above the least one of all plans, recomputation included.

Examples:
  tidepool bound vgg16 --machine gtx1080ti --budget 40%
  tidepool bound vgg16 --machine gtx1080ti --budget 40% --host-budget 150MB --file-tier 2.5GB,3GB
  tidepool plan vgg16 --machine gtx1080ti --budget 40% -o plan.json
  tidepool bound --plan plan.json --json)");
  command->callback([arguments, &context] {
    context.run = [arguments, &context] {
      catch_interrupts();
      auto code = bound(*arguments, context.json);
      return code ? *code : report(code.error(), context.json);
    };
  });
}

}  // namespace tidepool::cli
