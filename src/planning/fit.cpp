#include "planning/fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "ir/load_profile.h"
#include "lower/lower.h"
#include "lower/overhead.h"
#include "planners/registry.h"
#include "planning/host_budget.h"
#include "planning/make_plan.h"

namespace tidepool {
namespace {

class FitSearch {
 public:
  FitSearch(const TryBatch& try_batch, const FitOptions& options, ProgressSink& progress)
      : try_(try_batch), options_(options), progress_(progress) {}

  Result<FitFound> run() {
    grow();
    if (trials_.empty() && error_) return fail(*error_);
    if (const FitTrial* best = largest(); best != nullptr) {
      for (int i = 0; i <= kConfirmations; ++i) {
        find_largest();
        if (!largest()->estimated || attempt(largest()->batch, false) == nullptr) break;
      }
      find_fastest();
      for (int i = 0; i < kConfirmations && fastest()->estimated; ++i) {
        if (attempt(fastest()->batch, false) == nullptr) break;
      }
    }
    return found();
  }

 private:
  [[nodiscard]] FitFound found() const {
    FitFound result;
    for (const auto& [batch, trial] : trials_) result.trials.push_back(trial);
    if (largest() != nullptr) {
      result.largest = *largest();
      result.fastest = *fastest();
    }
    result.stopped = stopped_;
    result.ended_early = error_;
    return result;
  }

  static constexpr int kConfirmations = 4;  ///< of estimated results, by measuring
  static constexpr int kTriesAbove = 3;
  static constexpr double kStepAbove = 0.02;     ///< of the largest batch
  static constexpr int kRefinements = 6;         ///< rounds around the fastest batch
  static constexpr double kFinestRatio = 1.06;   ///< of neighbouring batches
  static constexpr double kUsualTrials = 40;     ///< for the progress alone
  static constexpr double kMostProgress = 0.95;  ///< how many there will be is not known

  /// The trial of a batch; null when the search ends.
  const FitTrial* attempt(std::int64_t batch, bool estimate) {
    const auto known = trials_.find(batch);
    if (known != trials_.end() && (estimate || !known->second.estimated)) return &known->second;
    if (error_ || stopped_) return nullptr;
    progress_.update(std::min(kMostProgress, static_cast<double>(trials_.size()) / kUsualTrials),
                     fmt::format("batch {}{}", batch, so_far()));
    auto trial = try_(batch, estimate);
    const bool interrupted = !trial && trial.error().code == ErrorCode::interrupted;
    // A plan is good however it ended; that there is none is known only where nothing stopped it.
    stopped_ = interrupted || options_.stop.requested();
    if (stopped_ && (!trial || !trial->fits)) return nullptr;
    if (!trial) {
      error_ = trial.error();
      return nullptr;
    }
    const FitTrial& kept = trials_[batch] = std::move(*trial);
    if (options_.known) options_.known(found());
    return &kept;
  }

  [[nodiscard]] std::string so_far() const {
    const FitTrial* best = largest();
    return best == nullptr ? "" : fmt::format(" ({} fits)", best->batch);
  }

  [[nodiscard]] const FitTrial* largest() const {
    const FitTrial* best = nullptr;
    for (const auto& [batch, trial] : trials_) {
      if (trial.fits) best = &trial;
    }
    return best;
  }
  [[nodiscard]] const FitTrial* fastest() const {
    const FitTrial* best = nullptr;
    for (const auto& [batch, trial] : trials_) {
      if (trial.fits && (best == nullptr || trial.samples_per_s() > best->samples_per_s())) {
        best = &trial;
      }
    }
    return best;
  }

  /// Doubles the batch. With measured times: those between them are estimated from these.
  void grow() {
    int failures = 0;
    for (std::int64_t batch = 1;; batch = std::min(2 * batch, options_.most)) {
      const FitTrial* trial = attempt(batch, false);
      if (trial == nullptr || batch == options_.most) return;
      failures = trial->fits ? 0 : failures + 1;
      if (failures > 1 || (failures > 0 && batch == 1)) return;
    }
  }

  /// Bisects between the largest that fits and the next above it that does not.
  void narrow() {
    while (true) {
      const std::int64_t low = largest()->batch;
      std::int64_t high = options_.most + 1;
      if (const auto above = trials_.upper_bound(low); above != trials_.end()) {
        high = above->first;
      }
      const auto enough = static_cast<std::int64_t>(static_cast<double>(low) * options_.resolution);
      if (high - low <= std::max<std::int64_t>(1, enough)) return;
      // Where nothing above is known to fail, first a doubled batch, as in grow().
      const std::int64_t middle =
          high > options_.most ? std::min(2 * low, options_.most) : low + (high - low) / 2;
      if (attempt(middle, true) == nullptr) return;
    }
  }

  void find_largest() {
    for (bool larger = true; larger;) {
      narrow();
      larger = false;
      const std::int64_t low = largest()->batch;
      const auto step = std::max<std::int64_t>(
          1, static_cast<std::int64_t>(static_cast<double>(low) * kStepAbove));
      for (int i = 1; i <= kTriesAbove && !larger; ++i) {
        const std::int64_t above = low + i * step;
        if (above > options_.most) return;
        const FitTrial* trial = attempt(above, true);
        if (trial == nullptr) return;
        larger = trial->fits;
      }
    }
  }

  /// Between the fastest and its neighbours, as long as they are not close.
  void find_fastest() {
    for (int round = 0; round < kRefinements; ++round) {
      const auto middle = trials_.find(fastest()->batch);
      std::vector<std::int64_t> next;
      const auto between = [&](std::int64_t low, std::int64_t high) {
        const auto ratio = static_cast<double>(high) / static_cast<double>(low);
        const auto batch = static_cast<std::int64_t>(
            std::llround(std::sqrt(static_cast<double>(low) * static_cast<double>(high))));
        if (ratio > kFinestRatio && batch > low && batch < high) next.push_back(batch);
      };
      if (middle != trials_.begin()) between(std::prev(middle)->first, middle->first);
      if (std::next(middle) != trials_.end()) between(middle->first, std::next(middle)->first);
      if (next.empty()) return;
      for (const std::int64_t batch : next) {
        if (attempt(batch, true) == nullptr) return;
      }
    }
  }

  const TryBatch& try_;
  const FitOptions& options_;
  ProgressSink& progress_;
  std::map<std::int64_t, FitTrial> trials_;
  std::optional<Error> error_;
  bool stopped_ = false;
};

/// As for a training: inside a host budget other plans are tried too.
Result<Planned> plan_of(Planner& planner, const Profile& profile, const Budget& budget,
                        const PlannerOptions& options) {
  FixedWorkload workload(profile.program);
  auto planned = make_plan(planner, workload, profile.machine, budget, options);
  if (planned) return planned;
  return plan_or_least_host_budget(planned.error(), planner, workload, profile.machine, budget,
                                   options, Least::any);
}

}  // namespace

double FitTrial::samples_per_s() const {
  return fits && iteration > Nanos{0} ? static_cast<double>(batch) * 1e3 / to_ms(iteration) : 0;
}

Result<FitFound> find_fit(const TryBatch& try_batch, const FitOptions& options,
                          ProgressSink& progress) {
  return FitSearch(try_batch, options, progress).run();
}

Result<FitTrial> try_plan(const Profile& profile, const Budget& budget, const std::string& planner,
                          const PlannerOptions& options) {
  FitTrial trial;
  trial.batch = profile.program.batch;
  const auto made = make_planner(planner);
  if (!made) return fail(made.error());
  const auto planned = plan_of(**made, profile, budget, options);
  if (!planned) {
    if (planned.error().code != ErrorCode::infeasible) return fail(planned.error());
    trial.why_not = planned.error();
    return trial;
  }
  const Lowered& lowered = planned->lowered;
  trial.streams = lowered.streaming;
  trial.fits = !lowered.streaming;
  if (trial.streams) {
    trial.why_not.code = ErrorCode::infeasible;
    trial.why_not.message =
        fmt::format("nothing that '{}' decides fits, only the streaming schedule", planner);
  }
  trial.iteration = lowered.iteration_time;
  trial.footprint = lowered.plan.device_bytes();
  trial.host = lowered.plan.host_bytes();
  trial.plan_time = planned->plan_time;
  trial.unlimited =
      unlimited_time(profile.program, profile.machine,
                     options.may.algorithms ? AlgorithmPolicy::fastest : options.algorithms);
  return trial;
}

namespace {

/// The largest batch up to `most` that is possible, where batch 1 is; any that is where `stop`
/// comes first.
template <class Possible>
std::int64_t largest_of(std::int64_t most, const Stop& stop, const Possible& possible) {
  std::int64_t low = 1;
  std::int64_t high = 2;
  while (high <= most && !stop.requested() && possible(high)) {
    low = high;
    high *= 2;
  }
  high = std::min(high, most + 1);
  while (high - low > 1 && !stop.requested()) {
    const std::int64_t middle = low + (high - low) / 2;
    (possible(middle) ? low : high) = middle;
  }
  return low;
}

Error stopped_before_a_batch() {
  return {ErrorCode::interrupted, "interrupted before a batch was tried", {}};
}

/// Whether the program has addresses in both budgets; which device they are on does not matter.
bool has_room(const Program& program, const Budget& budget, Bytes alignment, bool streaming) {
  Machine machine;
  machine.set_alignment(alignment);
  constexpr LinkSpeed kAny{1e12, Nanos{0}};  // what fits does not depend on it
  machine.set_links(kAny, kAny);
  Lowering lowering(program, machine);
  auto algorithms = least_workspace_algorithms(program);
  if (!streaming) {
    const Bytes peak = load_profile(program, lowering.index(), alignment, algorithms).peak;
    if (peak > budget.device) return false;
  }
  LowerOptions options;
  options.allow_streaming = streaming;
  const Strategy strategy = streaming
                                ? lowering.everything_away(std::move(algorithms))
                                : keep_everything(program, lowering.index(), std::move(algorithms));
  return lowering.lower(strategy, budget, options).has_value();
}

}  // namespace

Result<LargestPossible> largest_possible(const ProgramOfBatch& program, Bytes budget,
                                         Bytes alignment, std::int64_t most, const Stop& stop) {
  const auto first = program(1);
  if (!first) return fail(first.error());
  if (const SmallestBudget smallest = smallest_budget(*first, alignment); smallest.bytes > budget) {
    return fail(Error{ErrorCode::infeasible,
                      fmt::format("not even batch 1 fits {} B ({}): {}", budget,
                                  format_bytes(budget), explain(smallest, *first)),
                      smallest.bytes});
  }
  // A program that cannot be made, such as one with too many elements in a tensor, does not fit.
  const auto possible = [&](std::int64_t batch) {
    const auto made = program(batch);
    return made && smallest_budget(*made, alignment).bytes <= budget;
  };
  const std::int64_t low = largest_of(most, stop, possible);
  if (stop.requested()) return fail(stopped_before_a_batch());
  if (low == most) return LargestPossible{low, BatchLimit::most};
  if (const auto next = program(low + 1); !next) {
    return LargestPossible{low, BatchLimit::program, next.error().message};
  }
  return LargestPossible{low, BatchLimit::budget};
}

Result<FitUnplanned> fit_unplanned(const ProgramOfBatch& program, const Budget& budget,
                                   Bytes alignment, std::int64_t most, const Stop& stop) {
  const auto largest = [&](bool streaming) -> std::int64_t {
    const auto possible = [&](std::int64_t batch) {
      const auto made = program(batch);
      return made && has_room(*made, budget, alignment, streaming);
    };
    return possible(1) ? largest_of(most, stop, possible) : 0;
  };
  FitUnplanned unplanned{largest(false), budget.host > 0 ? largest(true) : most};
  if (stop.requested()) return fail(stopped_before_a_batch());
  return unplanned;
}

}  // namespace tidepool
