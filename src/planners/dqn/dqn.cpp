#include "planners/dqn/dqn.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/counted.h"
#include "base/random.h"
#include "lower/overhead.h"
#include "planners/dqn/agent.h"
#include "planners/toolkit/load_limit.h"
#include "planners/toolkit/published_output.h"

namespace tidepool {
namespace {

using MakeNetwork =
    std::function<Result<std::unique_ptr<dqn::QNetwork>>(const dqn::QNetworkOptions&)>;

/// One call of the planner.
class DqnRun {
 public:
  DqnRun(PlannerContext& context, const dqn::EnvironmentOptions& options, const MakeNetwork& make)
      : context_(context),
        settings_(context.options().q_learning),
        lowering_(context.lowering()),
        algorithms_(context.algorithms(lowering_.program())),
        unlimited_(unlimited_time(lowering_.program(), lowering_.machine(), algorithms_)),
        environment_(lowering_, algorithms_, budget() - budget() / 4, options),
        allowance_(context.allowance()),
        make_network_(make) {}

  Result<PlannerOutput> run() {
    if (auto kept = place(context_.everything_kept())) {
      return PlannerOutput{std::move(*kept), {"everything fits: nothing was learned"}};
    }
    if (auto made = make_network(); !made) return fail(made.error());
    agent_.emplace(environment_, network_.get(), settings_, hash_combine(seed(), kActions));
    record_ = std::make_shared<QLearningRecord>();
    find_limit();
    train();
    if (network_ != nullptr) record_->network = network_->save();
    find_addresses();
    if (!best_) leave_all();
    return output();
  }

 private:
  static constexpr std::int32_t kEpisodes = 60;
  static constexpr std::size_t kRemembered = 8;
  static constexpr int kToImprove = 3;
  static constexpr int kTighter = 10;
  static constexpr Bytes kParts = 32;  ///< of the budget, by which the limit goes down
  static constexpr std::uint64_t kActions = 1;
  static constexpr std::uint64_t kProbes = 2;

  struct Candidate {
    Nanos time{};
    Strategy strategy;
  };

  [[nodiscard]] Bytes budget() const { return context_.budget().device; }
  [[nodiscard]] std::uint64_t seed() const { return context_.options().seed; }
  [[nodiscard]] double overhead_of(Nanos time) const { return overhead(time, unlimited_); }
  [[nodiscard]] Stop stop() const {
    return [this] { return context_.stopped() || allowance_.used_up(); };
  }

  Result<void> make_network() {
    if (settings_.uniform) return {};
    dqn::QNetworkOptions options;
    options.width = settings_.width;
    options.hops = settings_.hops;
    options.learning_rate = settings_.learning_rate;
    options.discount = settings_.discount;
    options.seed = seed();
    auto network = make_network_(options);
    if (!network) return fail(network.error());
    network_ = std::move(*network);
    if (settings_.network.empty()) return {};
    return network_->load(settings_.network);
  }

  /// Below the budget, where random actions find a way there; else the budget.
  void find_limit() {
    constexpr int kTries = 10;
    dqn::Agent random(environment_, nullptr, settings_, hash_combine(seed(), kProbes));
    limit_ = budget() - budget() / kParts;
    for (int i = 0; i < kTries; ++i) {
      if (random.follow(limit_, nullptr, stop()).feasible) return;
    }
    limit_ = budget();
  }

  void train() {
    const std::int32_t own = settings_.episodes > 0 ? settings_.episodes : kEpisodes;
    for (std::int32_t episode = 1; episode <= own; ++episode) {
      const bool timed = settings_.episodes == 0;
      const double part = static_cast<double>(episode) / own;
      const auto outcome = agent_->learn(limit_, timed ? std::max(part, spent()) : part, stop());
      spend();
      if (outcome.stopped) break;
      add_episode(outcome);
      const double shown = timed ? std::max(part, spent()) : part;
      (void)shown;
      context_.show_progress(allowance_,
                             fmt::format("dqn: episode {} of {}, overhead {:.2f} %", episode, own,
                                         100 * record_->episodes.back().best));
    }
  }

  /// The part of the allowance that is over.
  [[nodiscard]] double spent() const {
    if (!allowance_.repeats()) {
      const auto whole = std::chrono::duration<double>(context_.options().time_limit).count();
      const auto left = std::chrono::duration<double>(allowance_.time_left()).count();
      return whole > 0 ? 1 - left / whole : 1;
    }
    const auto whole = static_cast<double>(context_.options().evaluation_limit);
    return whole > 0 ? static_cast<double>(allowance_.spent()) / whole : 0;
  }

  void spend() {
    allowance_.spend(environment_.simulations() - counted_);
    counted_ = environment_.simulations();
  }

  void add_episode(const dqn::EpisodeOutcome& outcome) {
    QLearningEpisode& episode = record_->episodes.emplace_back();
    episode.steps = agent_->steps();
    episode.episode_return = outcome.episode_return;
    episode.loss = outcome.loss;
    episode.greedy = outcome.greedy;
    if (outcome.feasible) {
      if (const auto time = remember(environment_.strategy())) {
        episode.feasible = true;
        episode.overhead = overhead_of(*time);
      }
    }
    episode.best = candidates_.empty() ? -1 : overhead_of(candidates_.front().time);
  }

  /// How long it takes, where the evaluator can make it.
  std::optional<Nanos> remember(const Strategy& strategy) {
    allowance_.spend(1);
    EvaluateOptions options;
    options.load_limit = budget();
    const Evaluation evaluation = lowering_.evaluator().evaluate(strategy, options);
    if (!evaluation.feasible) return std::nullopt;
    const Nanos time = evaluation.iteration_time;
    const auto place = std::ranges::upper_bound(candidates_, time, {}, &Candidate::time);
    const auto known = [&](const Candidate& c) { return c.strategy.gaps == strategy.gaps; };
    if (!std::ranges::any_of(candidates_, known)) candidates_.insert(place, {time, strategy});
    if (candidates_.size() > kRemembered) candidates_.pop_back();
    return time;
  }

  std::optional<Lowered> place(const Strategy& strategy) {
    LowerOptions options;
    options.stop = context_.options().stop;
    if (best_) options.faster_than = best_->iteration_time;
    Trial trial = tidepool::place(lowering_, strategy, context_.budget(), options);
    allowance_.spend(1);
    excess_ = trial.needed > 0 ? trial.excess(context_.budget()) : 0;
    return std::move(trial.lowered);
  }

  /// Whether one of the candidates got addresses.
  void place_candidates() {
    int placed = 0;
    least_excess_ = 0;
    for (const Candidate& candidate : candidates_) {
      if (best_ && (context_.stopped() || candidate.time >= best_->iteration_time)) return;
      if (auto lowered = place(candidate.strategy)) {
        best_ = std::move(lowered);
        if (++placed == kToImprove) return;
      } else if (excess_ > 0) {
        least_excess_ = least_excess_ == 0 ? excess_ : std::min(least_excess_, excess_);
      }
    }
  }

  void find_addresses() {
    place_candidates();
    LoadLimit limit(limit_, kParts);
    for (int i = 0; i < kTighter && !best_ && !candidates_.empty() && !context_.stopped(); ++i) {
      limit.tighten(least_excess_);
      if (limit.bytes() <= 0) return;
      const std::vector<Candidate> before = std::exchange(candidates_, {});
      for (const Candidate& candidate : before) {
        const auto outcome =
            agent_->follow(limit.bytes(), &candidate.strategy, context_.options().stop);
        if (outcome.feasible) remember(environment_.strategy());
      }
      place_candidates();
    }
  }

  /// Without an agent.
  void leave_all() {
    if (!context_.options().may.swap || context_.stopped()) return;
    best_ = place(lowering_.everything_away(algorithms_));
    left_all_ = best_.has_value();
  }

  Result<PlannerOutput> output() {
    if (!best_) {
      auto last = cannot_train(context_, note(), "DQN");
      if (last) last->learning = record_;
      return last;
    }
    return PlannerOutput{std::move(*best_), {note()}, record_};
  }

  [[nodiscard]] std::string note() const {
    const std::string episodes = counted(record_->episodes.size(), "episode");
    const std::string made = fmt::format("{}, {}", episodes, counted(agent_->steps(), "decision"));
    if (left_all_) return made + "; none has addresses, everything leaves";
    if (!best_) return made + "; none fits";
    const auto count = [this](Decision decision) {
      return std::ranges::count(best_->strategy.gaps, decision);
    };
    return fmt::format("{}; {} gaps are swapped, {} recomputed", made,
                       count(Decision::swap) + count(Decision::drop), count(Decision::recompute));
  }

  PlannerContext& context_;
  const QLearning& settings_;
  Lowering& lowering_;
  std::vector<std::int32_t> algorithms_;
  Nanos unlimited_;
  dqn::Environment environment_;
  Allowance allowance_;
  const MakeNetwork& make_network_;
  std::unique_ptr<dqn::QNetwork> network_;  ///< null: all actions are random
  std::optional<dqn::Agent> agent_;
  std::shared_ptr<QLearningRecord> record_;
  Bytes limit_ = 0;
  std::int64_t counted_ = 0;           ///< simulations that are spent already
  std::vector<Candidate> candidates_;  ///< the fastest first
  Bytes excess_ = 0;                   ///< of the last trial, where it is known
  Bytes least_excess_ = 0;
  std::optional<Lowered> best_;
  bool left_all_ = false;
};

class Dqn : public Planner {
 public:
  Dqn(DqnMode mode, MakeNetwork make_network)
      : mode_(mode), make_network_(std::move(make_network)) {}

  [[nodiscard]] std::string_view name() const override {
    return mode_ == DqnMode::swap ? "dqn-swap" : "dqn";
  }

  Result<PlannerOutput> plan(PlannerContext& context) override {
    const MayDecide& may = context.options().may;
    dqn::EnvironmentOptions options;
    options.offload = may.swap;
    options.remove = may.recompute && mode_ == DqnMode::swap_and_recompute;
    if (!options.offload && !options.remove) return PlannerOutput{context.everything_kept(), {}};
    return DqnRun(context, options, make_network_).run();
  }

 private:
  DqnMode mode_;
  MakeNetwork make_network_;
};

}  // namespace

std::unique_ptr<Planner> make_dqn(DqnMode mode, MakeNetwork make_network) {
  return std::make_unique<Dqn>(mode, std::move(make_network));
}

}  // namespace tidepool
