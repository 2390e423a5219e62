// tidepool analyse: what AutoSwap's scores pick under a limit on the memory load, what it costs,
// and how much of that another selection could have avoided.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/json.h"
#include "context.h"
#include "planners/autoswap/autoswap_load.h"
#include "planners/autoswap/avoidable_overhead.h"
#include "planning/planning_spec.h"
#include "subject_options.h"
#include "terminal_observer.h"

namespace tidepool::cli {
namespace {

struct AnalyseArguments {
  SubjectSpec subject;
  BudgetSpec load;  ///< `device` is the limit
  std::string smallest = "1MiB";
  bool least = false;
};

struct AnalysisRow {
  std::string name;
  LoadedSelection found;
  Bytes swapped = 0;
  AvoidableOverhead analysis;
};

/// The curve without swapping, and what AutoSwap can make of it.
struct Curve {
  Bytes peak = 0;
  Bytes load_min = 0;
  Nanos steep{};  ///< from the start of the iteration until the load is 95 % of the peak
  std::size_t candidates = 0;
};

Curve curve_of(const SwapCandidates& candidates, Bytes resident) {
  constexpr double kSteep = 0.95;
  const auto load = candidates.load();
  Curve curve;
  curve.peak = *std::max_element(load.begin(), load.end()) + resident;
  curve.load_min = candidates.load_min() + resident;
  curve.candidates = candidates.candidates().size();
  const auto steep = std::find_if(load.begin(), load.end(), [&](Bytes bytes) {
    return static_cast<double>(bytes + resident) >= kSteep * static_cast<double>(curve.peak);
  });
  curve.steep = candidates.start(static_cast<OpId>(steep - load.begin()));
  return curve;
}

AnalysisRow row_of(std::string name, LoadedSelection found, Lowering& lowering,
                   const SwapCandidates& candidates, Bytes limit) {
  AnalysisRow row{std::move(name), std::move(found), 0, {}};
  for (const SwapPick& pick : row.found.selection.picks) {
    const Gap& gap = lowering.index().gaps()[static_cast<std::size_t>(pick.gap)];
    row.swapped += lowering.program().tensors[static_cast<std::size_t>(gap.tensor)].bytes;
  }
  if (!row.found.evaluation.feasible) return row;
  const Strategy& strategy = row.found.selection.strategy;
  lowering.evaluator().evaluate(strategy, {limit});
  row.analysis = avoidable_overhead(lowering.evaluator(), candidates, strategy);
  return row;
}

Json row_json(const AnalysisRow& row) {
  Json json = {{"score", row.name},
               {"feasible", row.found.evaluation.feasible},
               {"weights", row.found.weights},
               {"picks", row.found.selection.picks.size()},
               {"swap_bytes", row.swapped}};
  if (!row.found.evaluation.feasible) return json;
  json["copies_out_ms"] = to_ms(row.analysis.copies_out);
  json["overhead_ms"] = to_ms(row.analysis.overhead);
  json["forward_overhead_ms"] = to_ms(row.analysis.forward_overhead);
  json["idle_out_ms"] = to_ms(row.analysis.idle_out);
  json["avoidable_ms"] = to_ms(row.analysis.avoidable);
  json["hidden"] = row.analysis.hidden();
  return json;
}

void print_row(const AnalysisRow& row) {
  const auto ms = [](Nanos t) { return fmt::format("{:.2f}", to_ms(t)); };
  const AvoidableOverhead& a = row.analysis;
  if (!row.found.evaluation.feasible) {
    say("  {:6} {:>5}   does not run under this limit\n", row.name,
        row.found.selection.picks.size());
    return;
  }
  say("  {:6} {:>5} {:>11} {:>10} {:>9} {:>8} {:>8} {:>9} {:>8.1f} %\n", row.name,
      row.found.selection.picks.size(), format_bytes(row.swapped), ms(a.copies_out), ms(a.overhead),
      ms(a.forward_overhead), ms(a.idle_out), ms(a.avoidable), 100 * a.hidden());
}

/// What was found under one limit.
struct Analysis {
  Curve curve;
  Bytes limit = 0;  ///< on the load, resident bytes included
  Nanos compute{};
  std::vector<AnalysisRow> rows;  ///< the scores, then their best combination
  std::optional<LeastLoad> least;
};

/// A row a score, then their best combination. Incomplete when interrupted.
std::vector<AnalysisRow> rows_under(Bytes limit, Lowering& lowering,
                                    const SwapCandidates& candidates,
                                    const WeightSearchOptions& search) {
  std::vector<AnalysisRow> rows;
  rows.reserve(kSwapScores.size() + 1);
  for (const SwapScore score : kSwapScores) {
    rows.push_back(row_of(std::string(to_string(score)),
                          select_under_load(lowering.evaluator(), candidates, only(score), limit,
                                            CopyRule::published),
                          lowering, candidates, limit));
  }
  rows.push_back(row_of("BO",
                        search_weights(lowering.evaluator(), candidates, limit, limit,
                                       published_search(search.seed, search.stop)),
                        lowering, candidates, limit));
  return rows;
}

void print_json(const Subject& subject, const Analysis& x) {
  Json list = Json::array();
  for (const AnalysisRow& row : x.rows) list.push_back(row_json(row));
  Json out = {{"schema", 1},
              {"program", subject.profile.program.name},
              {"machine", subject.profile.machine.name},
              {"load_limit_bytes", x.limit},
              {"unlimited_peak_bytes", x.curve.peak},
              {"resident_bytes", subject.resident},
              {"load_min_bytes", x.curve.load_min},
              {"candidates", x.curve.candidates},
              {"compute_ms", to_ms(x.compute)},
              {"steep_ms", to_ms(x.curve.steep)},
              {"rows", std::move(list)}};
  if (x.least) out["least_load_bytes"] = x.least->bytes + subject.resident;
  print(out);
}

void print_text(const Subject& subject, const Analysis& x) {
  say("{} on {}: {} an iteration, peak load {}, 95 % of it after {}\n",
      subject.profile.program.name, subject.profile.machine.name, format_time(x.compute),
      format_bytes(x.curve.peak), format_time(x.curve.steep));
  say("  load limit {}; {} candidates, all of them swapped leave {} (load_min)\n",
      format_bytes(x.limit), x.curve.candidates, format_bytes(x.curve.load_min));
  say("  {:6} {:>5} {:>11} {:>10} {:>9} {:>8} {:>8} {:>9} {:>10}\n", "score", "picks", "swapped",
      "copies out", "overhead", "forward", "out idle", "avoidable", "hidden");
  for (const AnalysisRow& row : x.rows) print_row(row);
  say("  times in ms; BO is {}\n", to_string(x.rows.back().found.weights));
  if (x.least) {
    const Bytes bytes = x.least->bytes + subject.resident;
    say("  no overhead down to {} ({:.1f} % less), by {}\n", format_bytes(bytes),
        100 * (1 - static_cast<double>(bytes) / static_cast<double>(x.curve.peak)),
        to_string(x.least->selection.weights));
  }
}

Result<int> analyse(const AnalyseArguments& a, bool json) {
  if (auto stated = check_sub_batch_is_stated(a.subject.job, "analyse"); !stated) {
    return fail(stated.error());
  }
  const auto smallest = parse_bytes(a.smallest);
  if (!smallest) return fail(ErrorCode::usage, "--smallest: " + smallest.error().message);
  TerminalObserver observer;
  const Cache cache(a.subject.cache, observer);
  const auto subject = subject_of(a.subject, a.load, cache, observer);
  if (!subject) return fail(subject.error());
  const Profile& profile = subject->profile;
  const auto limit = subject->budget_of(a.load);
  if (!limit) {
    Error error = limit.error();
    if (error.message.starts_with("budget ")) error.message.replace(0, 6, "--load");
    return fail(std::move(error));
  }
  Lowering lowering(profile.program, profile.machine);
  const SwapCandidates candidates(profile.program, lowering.index(), profile.machine,
                                  choose_algorithms(profile.program, subject->terms.algorithms),
                                  *smallest);
  WeightSearchOptions search;
  search.seed = a.subject.job.seed;
  search.stop = interrupted;
  Analysis analysis{curve_of(candidates, subject->resident),
                    limit->device + subject->resident,
                    candidates.compute_time(),
                    rows_under(limit->device, lowering, candidates, search),
                    {}};
  if (a.least) {
    analysis.least = least_load(lowering.evaluator(), candidates, kNoOverhead, search);
  }
  if (interrupted()) return fail(ErrorCode::interrupted, "interrupted while searching");
  if (json) {
    print_json(*subject, analysis);
  } else {
    print_text(*subject, analysis);
  }
  return kOk;
}

}  // namespace

void add_analyse(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<AnalyseArguments>();
  CLI::App* command = app.add_subcommand(
      "analyse", "compare AutoSwap's scores under a load limit, and what they leave avoidable");
  add_subject_options(*command, arguments->subject);
  state_sub_batch(*command);
  add_size_option(*command, "--load", arguments->load.device,
                  "limit on the memory load: 350MiB, 2GB, or a percentage of the peak")
      ->default_str("")
      ->required();
  command
      ->add_option("--smallest", arguments->smallest,
                   "candidates are tensors of at least this size")
      ->capture_default_str();
  command->add_flag("--least", arguments->least,
                    "also look for the least load without overhead (below 0.1 %)");
  command->add_flag("--json", context.json, "one JSON object on stdout");
  refuse_ignored(*command, ignored_by_subjects());
  command->footer(R"(
The limit is on the memory load; addresses are left aside (`plan` and `compare` are for budgets).
Each score picks gaps until the peak is within the limit, BO is their best linear combination; what
is picked is copied as in the paper (`autoswap-published`). --least is of `autoswap`.
forward is the overhead up to the peak, out idle the time without a copy out until then. avoidable
is the part of forward in which a tensor that was not picked could have gone out; hidden is the
share of the copies out that is not avoidable overhead.

Example:
  tidepool analyse vgg16 --machine gtx1080ti --load 60% --least)");
  command->callback([arguments, &context] {
    context.run = [arguments, &context] {
      catch_interrupts();
      auto code = analyse(*arguments, context.json);
      return code ? *code : report(code.error(), context.json);
    };
  });
}

}  // namespace tidepool::cli
