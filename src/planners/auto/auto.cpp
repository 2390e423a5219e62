#include "planners/auto/auto.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ir/load_profile.h"
#include "planners/auto/choices_note.h"
#include "planners/auto/size_order.h"
#include "planners/auto/size_search.h"
#include "planners/published/dqn/q_learning.h"
#include "planners/published/modnn/sub_batch.h"
#include "planners/registry.h"
#include "planners/toolkit/decision_reasons.h"
#include "planners/toolkit/wear.h"
#include "schedule/plan_totals.h"

namespace tidepool {
namespace {

using Clock = Allowance::Clock;

// Parts of the limit.
constexpr double kToSayWhatItWasWorth = 0.05;
constexpr double kUsualSize = 0.4;  ///< where there are others
constexpr double kOtherSize = 0.1;
constexpr double kFromNetwork = 0.2;  ///< more, from what a network comes to
constexpr int kMostSizes = 4;         ///< beside the usual one, once something fits
/// Below that a first look at every size is quick, and the best one gets the time.
constexpr Nanos kShort = std::chrono::seconds(1);
constexpr double kQuickLook = 0.15;
/// By so much an iteration has to be longer than its ops for other sizes to be asked for.
constexpr double kClearly = 0.01;

/// One call of the planner.
class AutoRun {
 public:
  AutoRun(PlannerContext& context, int threads)
      : context_(context), options_(context.options()), may_(options_.may), threads_(threads) {
    const Workload& all = context.workload();
    for (const auto size : may_.sub_batch ? all.sub_batches() : std::vector{all.sub_batch()})
      sizes_.push_back({size});
    const bool least = options_.algorithms == AlgorithmPolicy::least_workspace;
    if (least && searches_like_tide(context.lowering().program(), may_)) to_say_ = 0;
    searches_.resize(sizes_.size());
    while (sizes_[usual_].sub_batch != context.workload().sub_batch()) ++usual_;
  }

  Result<PlannerOutput> plan() {
    const bool several = sizes_.size() > 1;
    const bool file = leaves_to_file(context_.machine());
    const double rest = 1 - to_say_ - (file ? kToWriteLess : 0);
    const bool quick = several && options_.evaluation_limit == 0 && options_.time_limit < kShort;
    const double of_usual = quick ? kQuickLook : several ? kUsualSize : rest;
    const bool asked = try_size(
        usual_, of_usual, quick ? SizeSearch::Starts::quick : SizeSearch::Starts::all_planners);
    if (!asked) return fail(error_);
    if (several && !context_.stopped()) {
      const bool ask = others_may_be_faster();
      if (ask || !modnn_takes_the_usual_size()) {
        const std::vector<std::unique_ptr<OthersPlan>> planned = plans_of_others();
        if (ask || fastest_of(planned) < sizes_[usual_].time) try_others(planned);
      }
    }
    if (!searches_[fastest()]) return fail(error_);
    if (several && !context_.stopped()) search_on(rest);
    const std::size_t best = fastest();
    use_what_is_left(*searches_[best], rest);
    if (!context_.stopped()) ask_network(*searches_[best]);
    return output(*searches_[file ? write_less(best) : best]);
  }

 private:
  /// A plan that recomputes nothing and has the least workspaces leaves nothing to say.
  void use_what_is_left(SizeSearch& search, double rest) {
    if (options_.evaluation_limit > 0 || context_.stopped() || search.search() == nullptr) return;
    const Strategy& found = search.best().strategy;
    const std::int64_t others = other_algorithms(search.lowering().program(), found);
    if (others + decided(found, Decision::recompute) > 0) return;
    without_choices_ = search.best().iteration_time;
    end_ = 1;
    search.go_on(until(rest + to_say_, 0));
  }

  /// Which size then writes least of those that are as fast as the best.
  std::size_t write_less(std::size_t best) {
    const Nanos fast_enough = as_fast_as(searches_[best]->best().iteration_time);
    if (TideSearch* const search = searches_[best]->search()) {
      search->write_less(until(end_, kToWriteLess));
    }
    const auto written = [this](std::size_t i) {
      return written_to_files(searches_[i]->best().plan);
    };
    std::size_t least = best;
    for (std::size_t i = 0; i < searches_.size(); ++i) {
      const bool as_fast = searches_[i] && searches_[i]->has_plan() &&
                           searches_[i]->best().iteration_time <= fast_enough;
      if (as_fast && written(i) < written(least)) least = i;
    }
    return least;
  }

  /// A part of the whole limit.
  [[nodiscard]] PlannerOptions part_of_limit(double part) const {
    PlannerOptions options = options_;
    options.time_limit = std::chrono::duration_cast<Nanos>(options_.time_limit * part);
    if (options_.evaluation_limit > 0 && part < kUsualSize)
      options.evaluation_limit = evaluations(part);
    return options;
  }
  [[nodiscard]] std::int64_t evaluations(double part) const {
    return std::max<std::int64_t>(
        std::llround(part * static_cast<double>(options_.evaluation_limit)), 1);
  }
  /// To a part of the time limit; or so many evaluations.
  [[nodiscard]] Allowance until(double part, double part_of_evaluations) const {
    if (options_.evaluation_limit > 0) return Allowance::of(evaluations(part_of_evaluations));
    return {begun_ + std::chrono::duration_cast<Clock::duration>(options_.time_limit * part)};
  }

  /// False where the size has no program. Where it has no plan that is remembered.
  bool try_size(std::size_t i, double part, SizeSearch::Starts starts) {
    TriedSize& size = sizes_[i];
    size.tried = true;
    const Clock::time_point before = Clock::now();
    const auto program = context_.workload().program(size.sub_batch);
    begun_ += Clock::now() - before;
    if (!program) {
      remember(program.error());
      return false;
    }
    auto search =
        std::make_unique<SizeSearch>(context_, size.sub_batch, part_of_limit(part), threads_);
    if (auto begun = search->begin(starts); !begun) {
      remember(begun.error());
      return true;
    }
    size.time = search->best().iteration_time;
    searches_[i] = std::move(search);
    return true;
  }

  /// Of several sizes the one that needs least says what would be enough.
  void remember(const Error& error) {
    const bool less = error.smallest_feasible && error_.smallest_feasible &&
                      *error.smallest_feasible < *error_.smallest_feasible;
    if (error_.message.empty() || less) error_ = error;
  }

  [[nodiscard]] bool others_may_be_faster() {
    const Nanos time = sizes_[usual_].time;
    if (time == Nanos::max()) return true;
    const Program& program = context_.lowering().program();
    const AlgorithmSpace all(program, context_.machine().alignment(), kNoLimit,
                             context_.algorithms(program));
    const auto fastest = may_.algorithms ? all.fastest() : context_.algorithms(program);
    // Smaller rounds may even hide the copies of inputs.
    return to_seconds(time) > (1 + kClearly) * to_seconds(compute_time(program, fastest));
  }

  /// Then its plan is a start already, and other sizes need not be asked for.
  [[nodiscard]] bool modnn_takes_the_usual_size() {
    if (usual_ != 0) return false;
    const Program& program = context_.lowering().program();
    const auto algorithms =
        may_.algorithms ? fastest_algorithms(program) : context_.algorithms(program);
    const modnn::WindowRule rule{modnn::kPublishedAlpha, context_.machine().alignment(), false};
    return modnn::window_bytes(program, algorithms, rule) <= context_.budget().device;
  }

  static Nanos fastest_of(const std::vector<std::unique_ptr<OthersPlan>>& planned) {
    Nanos least = Nanos::max();
    for (const auto& other : planned) {
      if (other->plan) least = std::min(least, other->plan->iteration_time);
    }
    return least;
  }

  void try_others(const std::vector<std::unique_ptr<OthersPlan>>& planned) {
    std::size_t guess = size_that_fits(sizes_, context_.lowering(), context_.budget().device);
    Nanos least = Nanos::max();
    for (const auto& other : planned) {
      if (!other->plan || other->plan->iteration_time >= least) continue;
      least = other->plan->iteration_time;
      guess = index_of(other->plan->strategy.sub_batch);
    }
    for (int asked = 0; asked < kMostSizes || !searches_[fastest()]; ++asked) {
      if (context_.stopped() || (searches_[fastest()] && late())) break;
      const auto next = next_size(sizes_, guess);
      if (!next) break;
      try_size(*next, kOtherSize, SizeSearch::Starts::quick);
      add(planned, *next);
    }
    for (std::size_t i = 0; i < sizes_.size(); ++i) add(planned, i);
  }

  [[nodiscard]] bool late() const {
    return options_.evaluation_limit == 0 && until(1 - to_say_ - kOtherSize, 0).used_up();
  }

  /// The fastest size, and for half of the time another one that has clearly more to gain.
  void search_on(double rest) {
    const std::size_t best = fastest();
    const std::optional<std::size_t> other = more_to_gain(best);
    const double part = other ? (spent() + rest) / 2 : rest;
    const double evaluations = (1 - kUsualSize) / (other ? 2 : 1);
    searches_[best]->go_on(until(part, evaluations));
    sizes_[best].time = searches_[best]->best().iteration_time;
    if (!other || context_.stopped()) return;
    searches_[*other]->go_on(until(rest, evaluations));
    sizes_[*other].time = searches_[*other]->best().iteration_time;
  }
  /// The fastest of those whose ops, without any stall, would leave twice as much below the best
  /// plan as the best size's own.
  [[nodiscard]] std::optional<std::size_t> more_to_gain(std::size_t best) {
    constexpr int kTwice = 2;
    const Nanos time = sizes_[best].time;
    const auto gain = [&](std::size_t i) {
      TideSearch* const search = searches_[i] ? searches_[i]->search() : nullptr;
      return search != nullptr ? std::max(time - search->least_time(), Nanos{0}) : Nanos{0};
    };
    std::optional<std::size_t> other;
    for (std::size_t i = 0; i < sizes_.size(); ++i) {
      if (i == best || gain(i) <= kTwice * gain(best)) continue;
      if (!other || sizes_[i].time < sizes_[*other].time) other = i;
    }
    return other;
  }
  /// The part of the time limit that is over.
  [[nodiscard]] double spent() const {
    return to_seconds(Clock::now() - begun_) / to_seconds(options_.time_limit);
  }

  /// Of planners that choose a sub-batch themselves. That of keeping everything is tried anyway.
  std::vector<std::unique_ptr<OthersPlan>> plans_of_others() {
    std::vector<std::unique_ptr<OthersPlan>> all;
    for (const PlannerInfo& info : planner_list()) {
      if (context_.stopped()) break;
      if (!info.chooses_sub_batch || !info.seeds_searches || info.keeps_everything) continue;
      auto& other = all.emplace_back(std::make_unique<OthersPlan>());
      other->planner = &info;
      other->options = part_of_limit(kOtherSize);
      other->options.progress = nullptr;
      auto made = PlannerContext::make(context_.workload(), context_.machine(), context_.budget(),
                                       other->options);
      if (!made) continue;
      other->context.emplace(std::move(*made));
      const Clock::time_point before = Clock::now();
      other->make(false);
      // It asks for sizes too.
      if (const auto late = Clock::now() - before - other->options.time_limit; late > Nanos{0}) {
        begun_ += std::chrono::duration_cast<Clock::duration>(late);
      }
    }
    return all;
  }

  /// What is planned for this size counts as found there: alone, where the search has none.
  void add(const std::vector<std::unique_ptr<OthersPlan>>& planned, std::size_t i) {
    for (const auto& other : planned) {
      if (!other->plan || index_of(other->plan->strategy.sub_batch) != i) continue;
      if (!searches_[i]) {
        searches_[i] = std::make_unique<SizeSearch>(context_, sizes_[i].sub_batch,
                                                    part_of_limit(kOtherSize), threads_);
      }
      searches_[i]->add_plan(std::move(*other->plan), other->planner->name);
      other->plan.reset();
      sizes_[i].time = searches_[i]->best().iteration_time;
    }
  }

  [[nodiscard]] std::size_t index_of(std::int64_t sub_batch) const {
    std::size_t i = 0;
    while (i + 1 < sizes_.size() && sizes_[i].sub_batch != sub_batch) ++i;
    return i;
  }
  [[nodiscard]] std::size_t fastest() const {
    std::size_t best = usual_;
    for (std::size_t i = 0; i < sizes_.size(); ++i)
      if (sizes_[i].time < sizes_[best].time) best = i;
    return best;
  }

  /// On top of the limits: what is found without the network is found with it.
  void ask_network(SizeSearch& search) {
    if (!options_.values.has("network")) return;
    const auto all = planner_list();
    const auto learner = std::ranges::find_if(all, &PlannerInfo::plays_for_others);
    if (learner == all.end()) return;
    const Nanos more = std::chrono::duration_cast<Nanos>(options_.time_limit * kFromNetwork);
    const std::int64_t evaluations_more =
        options_.evaluation_limit > 0 ? evaluations(kFromNetwork) : 0;
    network_note_ = search.ask_network(*learner, more, evaluations_more);
  }

  PlannerOutput output(SizeSearch& search) {
    std::vector<std::string> notes{search.note()};
    if (!network_note_.empty()) notes.push_back(network_note_);
    const auto program = context_.workload().program(search.best().strategy.sub_batch);
    if (program) {
      add_reasons(**program, AccessIndex(**program), context_.machine(), search.best().strategy);
      TimesWithout without = times_without(**program, search);
      std::string note = choices_note(**program, search.best(), without);
      if (!note.empty()) notes.push_back(std::move(note));
    }
    return {std::move(search.best()), std::move(notes)};
  }

  TimesWithout times_without(const Program& program, SizeSearch& search) {
    const TriedSize& usual = sizes_[usual_];
    TimesWithout without{usual.time, without_choices_, without_choices_, usual.sub_batch};
    if (without_choices_ != Nanos::max()) return without;
    const Strategy& chosen = search.best().strategy;
    const bool algorithms = other_algorithms(program, chosen) > 0;
    const bool recompute = decided(chosen, Decision::recompute) > 0;
    TideSearch* const more = search.search();
    const auto allowance = [&](double part) {
      return until(1 - (1 - part) * to_say_, to_say_ / 2);
    };
    if (algorithms) {
      without.algorithms = search.fastest_start(
          [&](const Strategy& s) { return other_algorithms(program, s) == 0; });
      if (more != nullptr) {
        without.algorithms = std::min(without.algorithms, more->without_choosing(allowance(0.5)));
      }
    }
    if (recompute) {
      without.recompute = search.fastest_start(
          [](const Strategy& s) { return decided(s, Decision::recompute) == 0; });
      if (more != nullptr) {
        without.recompute = std::min(without.recompute, more->without_recomputing(allowance(1)));
      }
    }
    return without;
  }

  static constexpr Bytes kNoLimit = Bytes{1} << 60;

  PlannerContext& context_;
  const PlannerOptions& options_;
  const MayDecide& may_;
  int threads_;
  Clock::time_point begun_ = Clock::now();  ///< later by what asking for sizes took
  std::vector<TriedSize> sizes_;
  std::vector<std::unique_ptr<SizeSearch>> searches_;  ///< of the sizes; null: no plan
  std::size_t usual_ = 0;
  double to_say_ = kToSayWhatItWasWorth;  ///< 0: no choice that may be worth something
  double end_ = 1 - to_say_;              ///< of searches
  Nanos without_choices_ = Nanos::max();  ///< of a plan from which the search went on
  std::string network_note_;
  Error error_;
};

class Auto : public Planner {
 public:
  explicit Auto(int threads) : threads_(threads) {}

  [[nodiscard]] std::string_view name() const override { return "auto"; }

  Result<PlannerOutput> plan(PlannerContext& context) override {
    return AutoRun(context, threads_).plan();
  }

 private:
  int threads_;
};

}  // namespace

std::unique_ptr<Planner> make_auto(int threads) { return std::make_unique<Auto>(threads); }

namespace {

/// A planner that learns plays the network: where there is none, auto takes none.
std::span<const OptionRecord> options_of_auto() {
  const bool missing = std::ranges::any_of(
      missing_planners(), [](const MissingPlanner& planner) { return planner.name == "dqn"; });
  return missing ? std::span<const OptionRecord>() : network_option();
}

}  // namespace

PlannerInfo auto_planner() {
  return {
      .name = "auto",
      .description =
          "keeps, swaps, drops and recomputes by search, from what others find in part of its time",
      .make = [] { return make_auto(); },
      .starts_from = "autoswap",
      .time_limit = std::chrono::seconds(2),
      .options = options_of_auto(),
      .chooses_sub_batch = true,
      .chooses_algorithms = true,
      .keeps_without_limit = true,
      .rivals = Rivals::all,
      .seeds_searches = false};
}

}  // namespace tidepool
