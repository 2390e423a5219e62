// tidepool fit: the largest batch that fits a budget, and the fastest one.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <limits>
#include <set>
#include <span>

#include "fit_report.h"
#include "job/job.h"
#include "planners/registry.h"
#include "planners/settings.h"
#include "planning/batch_profiles.h"
#include "planning/planning_spec.h"
#include "subject.h"
#include "terminal_observer.h"

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

/// What is known of a search, which an interruption prints wherever it comes.
class FitObserver : public TerminalObserver {
 public:
  FitObserver(FitReport first, bool json, Clock::time_point begun)
      : known_(std::move(first)), json_(json), begun_(begun) {}

  /// Says each notice once: every batch asks for the same link and the same cache.
  void notice(Notice kind, const std::string& text) override {
    if (said_.insert(text).second) TerminalObserver::notice(kind, text);
  }
  /// Of the work for one batch: how far the search is says the search alone.
  void update(double /*fraction*/, std::string_view what) override {
    TerminalObserver::update(
        share_, stage_.empty() ? std::string(what) : fmt::format("{}: {}", stage_, what));
  }
  /// Of the search.
  void searches(double fraction, std::string_view what) {
    share_ = std::max(share_, fraction);
    stage_ = what;
    TerminalObserver::update(share_, stage_);
  }

  /// Not to be changed while a batch is measured: then another thread may print it.
  [[nodiscard]] FitReport& known() { return known_; }
  /// Returns the exit code.
  int print() {
    known_.took = Clock::now() - begun_;
    return print_fit(known_, json_);
  }

 protected:
  int report_promptly() override { return print(); }

 private:
  std::set<std::string> said_;
  double share_ = 0;
  std::string stage_;
  FitReport known_;
  bool json_;
  Clock::time_point begun_;
};

/// The progress of the search itself.
class SearchProgress : public ProgressSink {
 public:
  explicit SearchProgress(FitObserver& observer) : observer_(observer) {}
  void update(double fraction, std::string_view what) override {
    observer_.searches(fraction, what);
  }

 private:
  FitObserver& observer_;
};

/// Rounds are no larger than the batch.
SubjectArguments with_batch(SubjectArguments a, std::int64_t batch) {
  a.job.batch = batch;
  a.job.sub_batch = std::min(a.job.sub_batch, batch);
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

/// Everything up to the report, whose parts `observer` learns.
Result<void> search(const FitArguments& a, const Stop& stop, FitObserver& observer) {
  const Cache cache(a.subject.cache, observer);
  const auto place = place_of(a.subject, observer);
  if (!place) return fail(place.error());
  const auto budget = budget_of(a, *place);
  if (!budget) return fail(budget.error());
  const std::int64_t most = std::min(a.most, place->samples);
  FitReport& known = observer.known();
  known.machine = place->name;
  known.budget = budget->device;
  known.all_samples = most < a.most;
  const std::int64_t sub_batch = a.subject.job.sub_batch;
  std::int64_t ops = 0;  // of a round
  const ProgramOfBatch program = [&](std::int64_t batch) -> Result<Program> {
    // In rounds any batch fits that one round does: what ends it is the length of the program.
    if (ops > 0 && batch / sub_batch * ops > kMostOps) {
      return fail(ErrorCode::usage, fmt::format("in rounds of {} its program has more than {} ops",
                                                sub_batch, kMostOps));
    }
    auto made = program_of(a.subject, batch, cache, observer);
    if (made && sub_batch > 0) ops = static_cast<std::int64_t>(made->ops.size()) / made->rounds();
    return made;
  };
  SearchProgress progress(observer);
  progress.update(0, "which batches the budget can train at all");
  const auto possible = largest_possible(program, budget->device, place->alignment, most, stop);
  if (!possible) return fail(possible.error());
  known.possible = *possible;

  const BudgetSpec spec{{.bytes = budget->device}, budget->host};
  const bool measures = a.subject.machine.empty();
  SubjectArguments arguments = a.subject;
  BatchProfiles profiles(
      [&](std::int64_t batch) -> Result<Profile> {
        auto subject = subject_of(with_batch(arguments, batch), spec, cache, observer);
        if (!subject) return fail(subject.error());
        if (measures) arguments.links = subject->profile.machine;
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
  const auto learn = [&](const FitFound& found) {
    known.found = found;
    known.links = arguments.links;
    if (measures) known.measured = profiles.measured();
  };
  auto found = find_fit(try_batch, {possible->batch, a.resolution, stop, learn}, progress);
  if (!found) return fail(found.error());
  learn(*found);
  return {};
}

Result<int> fit(const FitArguments& a, bool json) {
  if (auto known = make_planner(a.planner.name); !known) return fail(known.error());
  if (a.subject.job.choose_sub_batch) {
    return fail(
        ErrorCode::usage,
        "--sub-batch auto: in rounds small enough any batch fits; give a number of samples, "
        "or none for batches as a whole");
  }
  const auto read = check_read_by(std::span(&a.planner.name, 1), a.planner.values);
  if (!read) return fail(read.error());
  const auto begun = Clock::now();
  const Stop stop = [&a, begun] {
    return interrupted() || (a.search_limit > Nanos{0} && Clock::now() - begun >= a.search_limit);
  };
  FitReport first;
  first.model = a.subject.job.model;
  first.planner = a.planner.name;
  first.resolution = a.resolution;
  FitObserver observer(std::move(first), json, begun);
  if (const auto searched = search(a, stop, observer); !searched) {
    if (searched.error().code != ErrorCode::interrupted) return fail(searched.error());
    observer.known().found.stopped = true;
  }
  return observer.print();
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
  state_sub_batch(*command);
  command->remove_option(command->get_option("--batch"));
  command->add_option("--machine", arguments->subject.machine,
                      "a preset (see `tidepool machines`) instead of measuring this device; its "
                      "memory is the budget where none is given");
  add_size_options(*command, arguments->budget);
  add_planner_options(*command, arguments->planner);
  command->get_option("--evaluations")
      ->description(
          "auto, tide, home and random end after so many trials of strategies for each batch: the "
          "same result on every machine where times are a preset's; instead of --time-limit");
  command->add_option("--most-batch", arguments->most, "no larger batch is tried")
      ->check(whole_number(1, std::int64_t{1} << 20))
      ->capture_default_str();
  add_resolution_option(*command, arguments->resolution);
  add_duration_option(*command, "--search-limit", arguments->search_limit,
                      "what the whole search may take; then it is what was found (default: no "
                      "limit; --time-limit is for one plan)");
  add_cache_options(*command, arguments->subject.cache);
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
others lie between those (estimated). A batch runs as a whole unless --sub-batch states its rounds;
then any batch fits that a round does, and the length of the program ends the search. Where not even batch 1 fits the exit code is 4. Ctrl-C keeps
what is known.

Examples:
  tidepool fit vgg16 --machine gtx1080ti --budget 2GiB
  tidepool fit vgg16 --machine gtx1080ti --planner none --resolution 1% --json
  tidepool fit tiny-vgg --device cpu --data synthetic --budget 4MiB --planner tide --time-limit 1s)");
  command->callback([arguments, &context] {
    context.run = [arguments, &context] {
      catch_interrupts();
      arguments->subject.choosing = chooses_algorithms(arguments->planner.name);
      auto code = fit(*arguments, context.json);
      return code ? *code : report(code.error(), context.json);
    };
  });
}

}  // namespace tidepool::cli
