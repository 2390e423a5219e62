// tidepool compare: every planner on one job, over one budget or a sweep.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <map>

#include "base/counted.h"
#include "base/json.h"
#include "base/quantity.h"
#include "budget_range.h"
#include "compare_measured.h"
#include "compare_plot.h"
#include "context.h"
#include "cost/spill.h"
#include "file_tier_options.h"
#include "job/offered_rounds.h"
#include "lower/overhead.h"
#include "option_names.h"
#include "planners/registry.h"
#include "planners/settings.h"
#include "planning/comparison.h"
#include "planning/learning.h"
#include "planning/planning_spec.h"
#include "planning/proven_gap.h"
#include "planning/rounds.h"
#include "profile_source.h"
#include "record_options.h"
#include "rounds_report.h"
#include "schedule/plan_totals.h"
#include "spill_options.h"
#include "subject_options.h"
#include "terminal_observer.h"

namespace tidepool::cli {
namespace {

struct CompareArguments {
  SubjectSpec subject;
  PlannerSpec planner;  ///< its time limit, for each
  std::vector<std::string> budgets{"60%"};
  BudgetSpec each;  ///< what holds beside each of those; its memory: instead of those
  std::vector<std::string> planners;
  std::string plot;  ///< a file for the picture; may be empty
  bool measure = false;
};

Json row_json(const ComparisonRow& r) {
  Json json = {{"planner", r.planner},
               {"budget_bytes", r.budget + r.resident},
               {"feasible", r.feasible()},
               {"least_overhead", r.least ? Json(*r.least) : Json(nullptr)}};
  if (!r.feasible()) {
    json["error"] = with_option_names(r.error);
    json["smallest_feasible_bytes"] = r.smallest ? Json(*r.smallest) : Json(nullptr);
    add_missing_bound(json, r.bound_stopped, r.bound_refused);
    return json;
  }
  json["footprint_bytes"] = r.footprint + r.resident;
  json["time_ms"] = to_ms(r.time);
  add_measured(json, r);
  json["unlimited_ms"] = to_ms(r.unlimited);
  json["overhead"] = overhead(r.time, r.unlimited);
  json["optimality_gap"] = r.gap ? Json(*r.gap) : Json(nullptr);
  json["bound"] = r.gap ? Json(to_string(r.bound_by)) : Json(nullptr);
  add_missing_bound(json, r.bound_stopped, r.bound_refused);
  json["swap_bytes"] = r.swapped;
  json["written_bytes"] = r.written ? Json(*r.written) : Json(nullptr);
  json["recomputed_ops"] = r.recomputed;
  json["plan_ms"] = to_ms(r.plan_time);
  add_to(json, r.rounds);
  json["from_smaller_budget"] = r.from_smaller_budget;
  json["streaming"] = r.streaming;
  return json;
}

/// Of the planners' names.
std::size_t name_width(const std::vector<std::string>& names) {
  std::size_t width = 10;
  for (const std::string& name : names) width = std::max(width, name.size());
  return width;
}

/// `file`: to which what is swapped is written, unless it is there already.
void print_header(std::size_t width, bool file) {
  say("  {:>11}  {:{}} {:>11} {:>12} {:>10} {:>14} {:>11}{} {:>10}\n", "budget", "planner", width,
      "footprint", "time", "overhead", "optimality gap", "swapped",
      file ? fmt::format(" {:>11}", "written") : "", "planned in");
}

std::string rounds_of(const RoundsOfPlan& r) {
  if (r.rounds == 1) return {};
  return fmt::format("  {}rounds of {}", r.chosen ? "chose " : "", r.sub_batch);
}

void print_row(const ComparisonRow& r, std::size_t width) {
  if (!r.feasible()) {
    say("  {:>11}  {:{}} infeasible: {}\n", format_bytes(r.budget + r.resident), r.planner, width,
        r.smallest ? fmt::format("the smallest budget is {} ({} B)", format_bytes_up(*r.smallest),
                                 *r.smallest)
                   : with_option_names(r.error));
  } else {
    say("  {:>11}  {:{}} {:>11} {:>12} {:>8.2f} % {:>14} {:>11}{} {:>10}{}{}{}\n",
        format_bytes(r.budget + r.resident), r.planner, width,
        format_bytes(r.footprint + r.resident), format_time(r.time),
        100 * overhead(r.time, r.unlimited), r.gap ? fmt::format("{:.2f} %", 100 * *r.gap) : "-",
        format_bytes(r.swapped), r.written ? fmt::format(" {:>11}", format_bytes(*r.written)) : "",
        format_time(r.plan_time), rounds_of(r.rounds), r.streaming ? "  streams" : "",
        r.from_smaller_budget ? "  (plan of a smaller budget)" : "");
  }
}

/// What the user lists, ranges written out.
Result<std::vector<BudgetSpec>> listed_budgets(const CompareArguments& a) {
  if (a.each.memory.given()) return std::vector<BudgetSpec>{a.each};
  std::vector<BudgetSpec> budgets;
  for (const std::string& text : a.budgets) {
    const auto range = budgets_of_range(text);
    if (!range) return fail(range.error());
    for (const std::string& one : *range) {
      const auto size = parse_size_or_percent(one);
      if (!size) return fail(size.error());
      budgets.push_back(a.each);
      budgets.back().device = *size;
    }
  }
  return budgets;
}

void print_json(const CompareArguments& a, const Subject& subject, std::optional<Nanos> unlimited,
                const Comparisons& all, const std::vector<CorrectedRow>& corrected) {
  Json list = Json::array();
  for (const ComparisonRow& row : all.rows) list.push_back(row_json(row));
  Json out = {{"schema", 1},
              {"program", subject.profile.program.name},
              {"machine", subject.profile.machine.name},
              {"unlimited_ms", unlimited ? Json(to_ms(*unlimited)) : Json(nullptr)},
              {"profile", subject.source ? to_json(*subject.source) : Json(nullptr)},
              {"rows", std::move(list)},
              {"interrupted", all.ended && all.ended->code == ErrorCode::interrupted}};
  if (a.measure) out["corrected"] = corrected_json(corrected);
  if (!a.plot.empty()) out["plot"] = a.plot;
  if (all.ended) {
    out["error"] = with_option_names(all.ended->message);
    out["exit_code"] = exit_code(all.ended->code);
    if (all.ended->smallest_feasible) {
      out["smallest_feasible_bytes"] = *all.ended->smallest_feasible;
    }
  }
  print(out);
}

void print_heading(const Subject& subject, std::optional<Nanos> unlimited, std::size_t width) {
  const Profile& profile = subject.profile;
  say("{} on {}, unlimited peak {}{}\n", profile.program.name, profile.machine.name,
      format_bytes(subject.unlimited_peak()),
      unlimited ? fmt::format("; without a budget {} an iteration, to which overhead refers",
                              format_time(*unlimited))
                : "");
  if (const std::string mark = mark_of_fake(subject.source); !mark.empty()) say("  {}\n", mark);
  print_header(width, may_write_to_file(profile.machine));
}

/// Why there are rows without a gap or with a weaker one, where it is not their plans.
void print_missing_bounds(const std::vector<ComparisonRow>& rows) {
  std::map<std::string, std::vector<std::string>> budgets;  // by what is said of their bounds
  for (const ComparisonRow& row : rows) {
    const std::string said = row.gap ? said_of(row.bound_by, row.bound_stopped) : std::string();
    if (said.empty()) continue;
    auto& listed = budgets[said];
    const std::string budget = format_bytes(row.budget + row.resident);
    if (listed.empty() || listed.back() != budget) listed.push_back(budget);
  }
  for (const auto& [said, listed] : budgets) {
    say("  gaps in {} may be smaller: {}\n", fmt::join(listed, ", "), with_option_names(said));
  }
  for (const ComparisonRow& row : rows) {
    if (row.bound_refused.empty()) continue;
    say("  no bound: {}\n", row.bound_refused);
    break;
  }
}

/// Those that are asked for, and whether what is said of them makes sense.
Result<void> choose_planners(CompareArguments& a) {
  if (a.planners.empty()) {
    for (const PlannerInfo& info : planner_list()) {
      if (!info.learns || a.planner.values.has("episodes")) a.planners.emplace_back(info.name);
    }
  }
  for (const std::string& name : a.planners) {
    if (auto known = make_planner(name); !known) return fail(known.error());
  }
  if (auto rounds = check_chosen_rounds(a.subject.job); !rounds) return rounds;
  const std::string named = a.subject.machine + a.subject.trace.file;
  if (auto tier = check_file_tier(a.subject.job.device.file_tier, named, 1); !tier) return tier;
  return check_planner_settings(a.planners, a.planner.values);
}

Result<void> check_record(const CompareArguments& a, std::size_t budgets) {
  const auto learners = std::ranges::count_if(a.planners, learns);
  if (!keeps_record(a.planner.values) || (learners == 1 && budgets == 1)) return {};
  return fail(ErrorCode::usage,
              "--save-network and --episode-log are of one plan: name one planner that learns and "
              "one budget");
}

Result<int> compare(CompareArguments a, bool json) {
  if (a.measure) {
    if (auto sound = check_measurable(a.subject); !sound) return fail(sound.error());
  }
  if (auto sound = choose_planners(a); !sound) return fail(sound.error());
  const std::vector<std::string> read{a.subject.profile, a.subject.program, a.subject.trace.file};
  if (auto plot = check_plot(a.plot, read); !plot) return fail(plot.error());
  a.subject.unmeasured = true;
  a.subject.choosing = std::ranges::any_of(a.planners, chooses_algorithms);
  const std::size_t width = name_width(a.planners);
  const auto budgets = listed_budgets(a);
  if (!budgets) return fail(budgets.error());
  if (auto one = check_record(a, budgets->size()); !one) return fail(one.error());
  TerminalObserver progress;
  const Cache cache(a.subject.cache, progress);
  const auto subject = subject_of(a.subject, *budgets, cache, progress);
  if (!subject) return fail(subject.error());
  const Profile& profile = subject->profile;
  const auto entries = compared_budgets(*budgets, *subject);
  if (!entries) return fail(entries.error());
  PlannerOptions options = planner_options(plan_terms(a.subject.job), a.planner);
  options.stop = interrupted;
  if (auto known = read_input_files(a.planner.values, options.values); !known) {
    return fail(known.error());
  }
  // Where no budget can be met nothing was measured, and only programs of one device are timed.
  std::optional<Nanos> unlimited;
  if (!entries->back().infeasible && on_one_device(profile.program)) {
    unlimited = subject->unlimited_time(profile.program, subject->terms.best_algorithms(true));
  }
  if (!json) print_heading(*subject, unlimited, width);
  auto all = compare_planners(*subject, *entries, a.planners, a.planner, options, progress,
                              [&](const ComparisonRow& row) {
                                if (!json) print_row(row, width);
                              });
  if (!all) return fail(all.error());
  std::vector<CorrectedRow> corrected;
  if (a.measure && !(all->ended && all->ended->code == ErrorCode::interrupted)) {
    auto measured =
        measure_rows(a.subject.job, *subject, *entries, std::move(options), *all, progress);
    if (!measured) return fail(measured.error());
    corrected = std::move(*measured);
  }
  if (auto drawn = write_plot(a.plot, *subject, all->rows); !drawn) return fail(drawn.error());
  if (json) {
    print_json(a, *subject, unlimited, *all, corrected);
  } else {
    if (a.measure) print_measured(all->rows, corrected, width);
    print_missing_bounds(all->rows);
    for (const ComparisonRow& row : all->rows) {
      if (const std::string warning = warning_of(row.rounds); !warning.empty()) {
        say("  rounds: {}\n", warning);
        break;
      }
    }
    if (!a.plot.empty()) inform("{}: overhead against budget\n", a.plot);
  }
  if (!all->ended) return kOk;
  return json ? exit_code(all->ended->code) : report(*all->ended, false);
}

constexpr const char* kFooter = R"(
overhead is the time of an iteration over the time without a budget, minus one; optimality gap is
what it may be above the least overhead, in the same measure: - where no bound is known, as the plan
runs other algorithms or rounds than the rest. Where --time-limit is too short for the linear program
of all ops the bound is by one of some ops, or by the op that needs most memory. A row that streams keeps only
the running op's tensors: nothing that its planner decides fits. A budget that cannot be met is a row
that names the smallest one; where none can be met the exit code is 4. The time without a
budget stands in the heading, one for all rows; percentages of --budget are of the whole batch. Ctrl-C keeps the rows that are
finished, and draws those. With --spill what leaves the arena is written to a file, and the plan that
writes least counts as the best of those that are as fast, to 0.5 %; with --file-tier what --host-budget
does not hold is written, and the fastest plan is the best. All run the same algorithms (but
rows that stream, those of least workspace) and the whole batch; planners whose papers choose them (see `tidepool planners`) do so with --algorithms auto and
--sub-batch auto. With --measure each plan trains for some iterations on this device, in blocks that take
turns; what an iteration took at its median, at least and at most stands beside what was predicted, of
plans in the rounds that are stated. Then auto plans for each budget by what they took, within --time-limit,
and what comes of it, called corrected, takes turns with the fastest. With --memory that training keeps to
SIZE, planning need not.

Examples:
  tidepool compare vgg16 --machine gtx1080ti --budget 50%
  tidepool compare vgg16 --machine gtx1080ti --sweep 30%..60%:10% --planners autoswap,tide --json
  tidepool compare vgg16 --machine gtx1080ti --sweep 40%..100%:10% --plot curve.svg
  tidepool compare vgg16 --machine gtx1080ti --budget 40% --host-budget 150MB --file-tier 2.5GB,3GB --planners autoswap,tide --time-limit 2s
  tidepool compare tiny-vgg --data synthetic --budget 50% --planners auto,tide,autoswap --measure
  tidepool compare vgg16 --data synthetic --sweep 20%..80%:20% --planners tide --spill /var/tmp)";

}  // namespace

void add_compare(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<CompareArguments>();
  CLI::App* command =
      app.add_subcommand("compare", "plan one job with several planners and compare the plans");
  add_subject_options(*command, arguments->subject);
  command
      ->add_option("--budget,--sweep", arguments->budgets,
                   "one or several budgets, such as 60%, 30%,40%,50%, or ranges: 30%..60% (in four "
                   "steps), 30%..60%:5%")
      ->delimiter(',')
      ->capture_default_str();
  command
      ->add_option("--planners", arguments->planners,
                   "names (default: all, but those that learn only with --episodes)")
      ->delimiter(',');
  add_search_options(*command, arguments->planner);
  add_planner_files(*command, arguments->planner);
  add_host_budget_option(*command, arguments->each);
  add_file_tier_options(*command, arguments->subject.job.device.file_tier);
  add_memory_options(*command, arguments->each.memory, arguments->subject.job.device.spill,
                     Spilling::of_an_arena_too);
  command
      ->add_option(
          "--plot", arguments->plot,
          "draw overhead against budget, one line a planner, over the proven bound: into a "
          "file that ends in .svg, .html or .png")
      ->type_name("FILE");
  command->add_flag("--measure", arguments->measure,
                    "also run the plans on this device, in turn, and say what an iteration takes; "
                    "for a model, without --machine");
  command->add_flag("--json", context.json, "one JSON object on stdout");
  arguments->subject.may_choose = true;
  refuse_ignored(*command, ignored_by_subjects());
  command->footer(kFooter);
  command->callback([arguments, &context] {
    context.run = [arguments, &context] {
      catch_interrupts();
      auto code = compare(*arguments, context.json);
      return code ? *code : report(code.error(), context.json);
    };
  });
}

}  // namespace tidepool::cli
