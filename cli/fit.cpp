// tidepool fit: the largest batch that fits a budget, and the fastest one.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <set>
#include <span>

#include "context.h"
#include "fit_report.h"
#include "planners/registry.h"
#include "planners/settings.h"
#include "planning/planning_spec.h"
#include "subject_options.h"
#include "terminal_observer.h"

namespace tidepool::cli {
namespace {

using Clock = std::chrono::steady_clock;

struct FitArguments : FitSpec {
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
  SearchProgress progress(observer);
  if (const auto searched = fit_batches(a, stop, observer.known(), progress, observer); !searched) {
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
