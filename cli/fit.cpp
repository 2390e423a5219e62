// tidepool fit: the largest batch that fits a budget, and the fastest one.
#include <fmt/format.h>

#include <chrono>
#include <limits>
#include <set>
#include <span>

#include "base/counted.h"
#include "base/json.h"
#include "lower/overhead.h"
#include "option_names.h"
#include "planners/registry.h"
#include "subject.h"
#include "terminal_observer.h"
#include "train/batch_profiles.h"
#include "train/job.h"

namespace tidepool::cli {
namespace {

using Clock = std::chrono::steady_clock;

struct FitArguments {
  SubjectArguments subject;
  BudgetSpec budget;
  PlannerSpec planner;
  std::int64_t most = std::int64_t{1} << 20;
  double resolution = 0;  ///< a share
  Nanos search_limit{0};  ///< of everything; 0: none
};

/// Says each notice once: every batch asks for the same link and the same cache.
class FitObserver : public TerminalObserver {
 public:
  void notice(Notice kind, const std::string& text) override {
    if (said_.insert(text).second) TerminalObserver::notice(kind, text);
  }

 private:
  std::set<std::string> said_;
};

/// What was searched for, and what came of it.
struct Fit {
  const FitArguments& arguments;
  std::string machine;
  Budget budget{};
  std::optional<std::int64_t> possible{};  ///< the largest batch that the streaming schedule trains
  std::optional<std::size_t> measured{};   ///< profiles; none of a preset
  FitFound found{};
  Nanos took{};
};

Json trial_json(const FitTrial& t) {
  Json json = {
      {"batch", t.batch}, {"fits", t.fits}, {"streaming", t.streams}, {"estimated", t.estimated}};
  if (!t.fits) {
    json["why_not"] = with_option_names(t.why_not.message);
    return json;
  }
  json["samples_per_s"] = t.samples_per_s();
  json["iteration_ms"] = to_ms(t.iteration);
  json["overhead"] = overhead(t.iteration, t.unlimited);
  json["footprint_bytes"] = t.footprint;
  json["plan_ms"] = to_ms(t.plan_time);
  return json;
}

bool complete(const Fit& fit) { return !fit.found.stopped && !fit.found.ended_early; }

void print_json(const Fit& fit) {
  const FitFound& found = fit.found;
  Json trials = Json::array();
  for (const FitTrial& t : found.trials) trials.push_back(trial_json(t));
  Json out = {{"schema", 1},
              {"model", fit.arguments.subject.job.model},
              {"machine", fit.machine},
              {"planner", fit.arguments.planner.name},
              {"budget_bytes", fit.budget.device},
              {"largest", found.largest ? trial_json(*found.largest) : Json(nullptr)},
              {"fastest", found.fastest ? trial_json(*found.fastest) : Json(nullptr)},
              {"largest_streaming_batch", fit.possible ? Json(*fit.possible) : Json(nullptr)},
              {"resolution", fit.arguments.resolution},
              {"trials", std::move(trials)},
              {"profiles_measured", fit.measured ? Json(*fit.measured) : Json(nullptr)},
              {"search_ms", to_ms(fit.took)},
              {"complete", complete(fit)},
              {"interrupted", interrupted()}};
  if (found.ended_early) out["ended_early"] = with_option_names(found.ended_early->message);
  print(out);
}

void print_trial(const char* what, const FitTrial& t) {
  say("  {:14} {:>8}  {:>10.2f} samples/s, {} an iteration, overhead {:.2f} %, footprint {}{}\n",
      what, t.batch, t.samples_per_s(), format_time(t.iteration),
      100 * overhead(t.iteration, t.unlimited), format_bytes(t.footprint),
      t.estimated ? " (estimated times)" : "");
}

void print_text(const Fit& fit) {
  const FitFound& found = fit.found;
  say("{} on {}: {} in {}\n", fit.arguments.subject.job.model, fit.machine,
      fit.arguments.planner.name, format_bytes(fit.budget.device));
  print_trial("largest batch", *found.largest);
  print_trial("fastest batch", *found.fastest);
  if (fit.possible) {
    say("  {:14} {:>8}  is the largest that this budget can train at all: by the streaming "
        "schedule, which keeps only the running op's tensors\n",
        "streaming", *fit.possible);
  }
  say("  {:14} {} in {}{}\n", "tried",
      fmt::format("{} batch{}", found.trials.size(), found.trials.size() == 1 ? "" : "es"),
      format_time(fit.took),
      fit.measured ? fmt::format("; {} measured or from the cache, others estimated from them",
                                 counted(*fit.measured, "profile"))
                   : "");
  for (const FitTrial& t : found.trials) {
    if (t.fits) {
      say("  {:>23}  {:>10.2f} samples/s, overhead {:.2f} %\n", t.batch, t.samples_per_s(),
          100 * overhead(t.iteration, t.unlimited));
    } else {
      say("  {:>23}  does not fit{}\n", t.batch, t.streams ? " but by streaming" : "");
    }
  }
  if (found.ended_early) {
    say("  note: larger batches were not tried: {}\n",
        with_option_names(found.ended_early->message));
  }
}

SubjectArguments with_batch(SubjectArguments a, std::int64_t batch) {
  a.job.batch = batch;
  return a;
}

/// Of a batch, without a budget: it is not measured.
Result<Program> program_of(const SubjectArguments& a, std::int64_t batch, const Cache& cache,
                           Observer& observer) {
  if (a.machine.empty()) {
    const auto job = Job::make(with_batch(a, batch).job, observer);
    if (!job) return fail(job.error());
    return job->program();
  }
  auto subject = subject_of(with_batch(a, batch), BudgetSpec{}, cache, observer);
  if (!subject) return fail(subject.error());
  return std::move(subject->profile.program);
}

/// Name, memory and alignment of what is planned for, and the most samples it has.
struct Place {
  std::string name;
  Bytes alignment = 0;
  Bytes memory = 0;  ///< 0: not known
  std::int64_t samples = std::numeric_limits<std::int64_t>::max();
};

Result<Place> place_of(const SubjectArguments& a, Observer& observer) {
  if (!a.machine.empty()) {
    const auto machine = find_machine(a.machine);
    if (!machine) return fail(machine.error());
    return Place{machine->name, machine->alignment(), machine->device_memory()};
  }
  const auto job = Job::make(with_batch(a, 1).job, observer);
  if (!job) return fail(job.error());
  return Place{job->kind().name, job->alignment(), 0, job->data().size()};
}

Result<Budget> budget_of(const FitArguments& a, const Place& place) {
  if (a.budget.device.percent >= 0) {
    return fail(ErrorCode::usage,
                "--budget: give bytes, such as 400MiB; the peak that a percentage refers to is "
                "another for every batch");
  }
  if (a.budget.limited()) return Budget{a.budget.device.bytes, a.budget.host};
  if (place.memory > 0) return Budget{place.memory, a.budget.host};
  return fail(ErrorCode::usage,
              fmt::format("give a --budget: how much memory '{}' has is not known", place.name));
}

/// The search. `begun`: when the command was.
Result<Fit> search(const FitArguments& a, Clock::time_point begun) {
  const Stop stop = [&a, begun] {
    return interrupted() || (a.search_limit > Nanos{0} && Clock::now() - begun >= a.search_limit);
  };
  FitObserver observer;
  const Cache cache(a.subject.cache, observer);
  const auto place = place_of(a.subject, observer);
  if (!place) return fail(place.error());
  const auto budget = budget_of(a, *place);
  if (!budget) return fail(budget.error());
  const ProgramOfBatch program = [&](std::int64_t batch) {
    return program_of(a.subject, batch, cache, observer);
  };
  observer.update(0, "which batches the budget can train at all");
  const std::int64_t most = std::min(a.most, place->samples);
  const auto possible = largest_possible(program, budget->device, place->alignment, most);
  if (!possible) return fail(possible.error());

  const BudgetSpec spec{{.bytes = budget->device}, budget->host};
  const bool measures = a.subject.machine.empty();
  BatchProfiles profiles(
      [&](std::int64_t batch) -> Result<Profile> {
        auto subject = subject_of(with_batch(a.subject, batch), spec, cache, observer);
        if (!subject) return fail(subject.error());
        return std::move(subject->profile);
      },
      measures ? program : ProgramOfBatch{});
  PlannerOptions options = planner_options(a.subject.job, a.planner);
  options.stop = stop;
  const TryBatch try_batch = [&](std::int64_t batch, bool estimate) -> Result<FitTrial> {
    const auto profile = profiles.profile(batch, estimate);
    if (!profile) return fail(profile.error());
    auto trial = try_plan(*profile->profile, *budget, a.planner.name, options);
    if (trial) trial->estimated = profile->estimated;
    return trial;
  };
  auto found = find_fit(try_batch, {*possible, a.resolution, stop}, observer);
  if (!found) return fail(found.error());
  Fit result{a, place->name, *budget};
  result.found = std::move(*found);
  result.took = Clock::now() - begun;
  if (*possible < most) result.possible = *possible;
  if (measures) result.measured = profiles.measured();
  return result;
}

Error nothing_found(const FitFound& found) {
  if (interrupted()) return {ErrorCode::interrupted, "interrupted before a batch was found", {}};
  if (found.stopped) return {ErrorCode::runtime, "--search-limit: no batch was found in time", {}};
  Error error = found.trials.front().why_not;
  error.message = "not even batch 1 fits: " + error.message;
  return error;
}

Result<int> fit(const FitArguments& a, bool json) {
  if (auto known = make_planner(a.planner.name); !known) return fail(known.error());
  if (auto sound = check_swarm(std::span(&a.planner.name, 1), a.planner.swarm); !sound) {
    return fail(sound.error());
  }
  const auto result = search(a, Clock::now());
  if (!result) return fail(result.error());
  if (!result->found.largest) return fail(nothing_found(result->found));
  if (json) {
    print_json(*result);
  } else {
    print_text(*result);
  }
  if (interrupted()) return exit_code(ErrorCode::interrupted);
  if (result->found.stopped) inform("tidepool: --search-limit: this is what was found in time\n");
  return kOk;
}

CLI::Option* add_resolution_option(CLI::App& command, double& resolution) {
  const auto parse = [&resolution](const std::string& text) {
    const auto size = parse_size_or_percent(text);
    if (!size || size->percent < 0 || size->percent > 50) {
      throw CLI::ValidationError("--resolution",
                                 fmt::format("'{}' is not a percentage up to 50%", text));
    }
    resolution = size->percent / 100;
  };
  return command
      .add_option_function<std::string>(
          "--resolution", parse,
          "the largest batch is found to this percentage: quicker (default: to one sample)")
      ->type_name("PERCENT");
}

}  // namespace

void add_fit(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<FitArguments>();
  CLI::App* command =
      app.add_subcommand("fit", "find the largest batch that fits a budget, and the fastest one");
  add_job_options(*command, arguments->subject.job);
  for (const char* name : {"--batch", "--sub-batch", "--sub-batch-statistics"}) {
    command->remove_option(command->get_option(name));
  }
  command->add_option("--machine", arguments->subject.machine,
                      "a preset (see `tidepool machines`) instead of measuring this device; its "
                      "memory is the budget where none is given");
  add_size_options(*command, arguments->budget);
  add_planner_options(*command, arguments->planner);
  command->add_option("--most-batch", arguments->most, "no larger batch is tried")
      ->check(whole_number(1, std::int64_t{1} << 20))
      ->capture_default_str();
  add_resolution_option(*command, arguments->resolution);
  add_duration_option(*command, "--search-limit", arguments->search_limit,
                      "what the whole search may take; then it is what was found (default: no "
                      "limit; --time-limit is for one plan)");
  add_cache_options(*command, arguments->subject.cache, false);
  command->add_flag("--json", context.json, "one JSON object on stdout");
  std::vector<Ignored> ignored{ignored_by_subjects().front()};
  ignored.push_back({"--evaluations", {"--time-limit"}});
  refuse_ignored(*command, std::move(ignored));
  command->footer(R"(
A batch fits where the planner has a plan inside the budget; the streaming schedule, which takes a
plan's place where nothing the planner decides fits, does not count, and how far that goes is said
beside. The batch is doubled until two in a row do not fit, the place in between is bisected, and
then some larger ones are tried, as planners are not monotonic. The fastest batch is looked for
among all that were tried and around the best of them. On a preset times are those of its compute
model. On a device the doubled batches and both results are measured, inside the budget; times of
others lie between those (estimated). Where not even batch 1 fits the exit code is 4. Ctrl-C keeps
what is known.

Examples:
  tidepool fit vgg16 --machine gtx1080ti --budget 2GiB
  tidepool fit vgg16 --machine gtx1080ti --planner none --resolution 1% --json
  tidepool fit tiny-vgg --device cpu --data synthetic --budget 4MiB --planner tide --time-limit 1s)");
  command->callback([arguments, &context] {
    context.run = [arguments, &context] {
      catch_interrupts();
      auto code = fit(*arguments, context.json);
      return code ? *code : report(code.error(), context.json);
    };
  });
}

}  // namespace tidepool::cli
