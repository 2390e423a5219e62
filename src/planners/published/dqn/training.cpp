#include "planners/published/dqn/training.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "base/random.h"
#include "ir/load_profile.h"
#include "lower/overhead.h"

namespace tidepool::dqn {
namespace {

/// What is left of random actions where the network has learned before.
constexpr double kRandomAfterwards = 0.25;
/// Greedy episodes beside the last: one in so many, when that part of all is over.
constexpr std::int32_t kEachGreedy = 4;
constexpr double kUntried = 0.4;
constexpr std::uint64_t kActions = 1;  // streams of random numbers
constexpr std::uint64_t kTries = 2;
constexpr std::uint64_t kMutations = 3;

}  // namespace

std::optional<Nanos> evaluated_time(Lowering& lowering, Bytes budget, const Strategy& strategy) {
  EvaluateOptions options;
  options.load_limit = budget;
  const Evaluation evaluation = lowering.evaluator().evaluate(strategy, options);
  if (!evaluation.feasible) return std::nullopt;
  return evaluation.iteration_time;
}

std::function<std::optional<double>(const Strategy&)> evaluated_overhead(
    Lowering& lowering, Bytes budget, std::span<const std::int32_t> algorithms) {
  const Nanos unlimited = unlimited_time(lowering.program(), lowering.machine(), algorithms);
  return [&lowering, budget, unlimited](const Strategy& strategy) -> std::optional<double> {
    const auto time = evaluated_time(lowering, budget, strategy);
    if (!time) return std::nullopt;
    return overhead(*time, unlimited);
  };
}

Training::Training(Lowering& lowering, Environment& environment, QNetwork* network,
                   const QLearning& settings, TrainingOptions options)
    : lowering_(lowering),
      environment_(environment),
      network_(network),
      settings_(settings),
      options_(std::move(options)),
      agent_(environment, network, settings, hash_combine(options_.seed, kActions)),
      random_(environment, nullptr, settings, hash_combine(options_.seed, kTries)),
      mutations_(hash_combine(options_.seed, kMutations)),
      unlimited_(unlimited_time(lowering.program(), lowering.machine(), environment.algorithms())),
      time_(options_.allowance.time_left()),
      evaluations_(options_.allowance.evaluations_left()) {}

void Training::prepare() {
  if (try_random()) return;
  options_.limit = options_.budget;
  try_random();
}

/// False where no episode is feasible.
bool Training::try_random() {
  constexpr int kMostTries = 10;
  constexpr double kAllowed = 0.1;  // of the allowance
  constexpr double kLeast = 0.01;   // overhead
  constexpr double kLeastPenalty = 0.3;
  double sum = 0;
  double worst = 0;
  int feasible = 0;
  const double before = spent();
  for (int i = 0; i < kMostTries && (i == 0 || spent() - before < kAllowed); ++i) {
    const Stop stop = [&, late = Allowance::Clock::now() + std::chrono::seconds(1)] {
      return i > 0 ? options_.stop.requested()
                   : options_.asked.requested() || Allowance::Clock::now() > late;
    };
    const EpisodeOutcome outcome = random_.follow(options_.limit, nullptr, stop);
    spend();
    if (!outcome.feasible) continue;
    ++feasible;
    sum += std::max(environment_.overhead(), 0.0);
    worst = std::max(worst, environment_.overhead());
    const auto time = evaluated_time(lowering_, options_.budget, environment_.strategy());
    if (time && (!tried_ || *time < tried_->time)) tried_ = {*time, environment_.strategy()};
  }
  if (feasible == 0) return false;
  agent_.set_scale(1 / std::max(sum / feasible, kLeast));
  environment_.set_penalty(std::max(2 * worst, kLeastPenalty));
  return true;
}

/// The part of the allowance that is over.
double Training::spent() const {
  if (options_.allowance.repeats()) {
    return static_cast<double>(options_.allowance.spent()) / static_cast<double>(evaluations_);
  }
  const std::chrono::duration<double> over = Allowance::Clock::now() - begun_;
  return time_.count() > 0 ? over / std::chrono::duration<double>(time_) : 1;
}

void Training::spend() {
  options_.allowance.spend(environment_.simulations() - simulations_spent_);
  simulations_spent_ = environment_.simulations();
}

void Training::run() {
  learn();
  if (found_.empty() && tried_) found_.push_back(std::move(*tried_));
}

void Training::learn() {
  if (settings_.greedy) {
    const EpisodeOutcome outcome = agent_.follow(options_.limit, nullptr, options_.stop);
    if (!outcome.stopped) {
      add(outcome);
      record_.greedy = record_.episodes.back().overhead;
    }
    return;
  }
  // Chance has no end of its own: it is as good as the time it gets.
  constexpr auto kForEver = std::chrono::hours(24);
  const bool ends = options_.allowance.repeats() || time_ < kForEver;
  const std::int32_t own =
      network_ == nullptr && ends ? std::numeric_limits<std::int32_t>::max() : kEpisodes;
  const std::int32_t episodes = by_number() ? settings_.episodes : own;
  // Mutations of what others have found come first: they take milliseconds.
  constexpr int kBeforeAll = 16;
  constexpr Allowance::Clock::duration kMostBeforeAll = std::chrono::seconds(15);
  if (settings_.improves) try_mutations(std::min(time_ / kBeforeAll, kMostBeforeAll));
  for (std::int32_t i = 1; i <= episodes; ++i) {
    spend();
    if (options_.stop.requested() || options_.allowance.used_up()) break;
    const auto episode_begun = Allowance::Clock::now();
    const std::string plays = network_ != nullptr ? network_->save() : std::string{};
    const EpisodeOutcome outcome =
        agent_.learn(options_.limit, 1 - random_part(i, episodes), options_.stop);
    if (outcome.stopped) break;
    add(outcome);
    keep_if_best(outcome, plays);
    if (options_.seen) options_.seen(record_, episodes);
    if (!by_number() && nothing_is_better()) break;
    if (settings_.improves) try_mutations(Allowance::Clock::now() - episode_begun);
  }
  if (!best_network_.empty()) (void)network_->load(best_network_);
}

void Training::begin_with(const Strategy& strategy) {
  // Without a network its actions are those of chance where the strategy's are not enough.
  Agent& agent = network_ != nullptr ? agent_ : random_;
  const auto outcome =
      agent.follow(options_.limit, &strategy, options_.stop, Agent::Follow::remembered);
  if (outcome.feasible) remember(environment_.strategy());
  remember(strategy);
}

/// For several times as long. Where no clock decides, a few.
void Training::try_mutations(Allowance::Clock::duration time) {
  constexpr int kTimesAsLong = 4;
  constexpr int kFew = 4;
  const auto until = Allowance::Clock::now() + kTimesAsLong * time;
  const bool counted = by_number() || options_.allowance.repeats();
  for (int i = 0; counted ? i < kFew : Allowance::Clock::now() < until; ++i) {
    if (options_.stop.requested() || options_.allowance.used_up() || found_.empty()) return;
    try_mutation(network_ != nullptr && (counted ? i % 2 == 1 : network_pays()));
    spend();
  }
}

/// By what each has found until now in a second; both are tried first.
bool Training::network_pays() const {
  const auto found_a_second = [](std::int64_t better, Allowance::Clock::duration time) {
    constexpr double kBegin = 0.05;  // seconds
    return static_cast<double>(better + 1) / (std::chrono::duration<double>(time).count() + kBegin);
  };
  return found_a_second(record_.better_by_network, by_network_) >
         found_a_second(record_.better_at_random, at_random_);
}

void Training::try_mutation(bool by_network) {
  const auto begun = Allowance::Clock::now();
  const Nanos before = best().time;
  const Strategy strategy = mutated(best().strategy);
  Agent& agent = by_network ? agent_ : random_;
  const auto outcome =
      agent.follow(options_.limit, &strategy, options_.stop, Agent::Follow::remembered);
  if (outcome.stopped) return;
  ++record_.mutations;
  if (outcome.feasible) remember(environment_.strategy());
  (by_network ? by_network_ : at_random_) += Allowance::Clock::now() - begun;
  if (best().time >= before) return;
  ++(by_network ? record_.better_by_network : record_.better_at_random);
}

Strategy Training::mutated(const Strategy& strategy) {
  constexpr std::array kUndone{0.05, 0.15, 0.4};
  const double part = kUndone[mutations_.below(kUndone.size())];
  Strategy result = strategy;
  for (const ActionGap& gap : environment_.gaps()) {
    if (mutations_.uniform() < part) {
      result.gaps[static_cast<std::size_t>(gap.gap)] = Decision::keep;
    }
  }
  return result;
}

/// Of the actions of an episode. See Note [Greedy episodes].
double Training::random_part(std::int32_t episode, std::int32_t episodes) const {
  const bool goes_on = !settings_.network.empty();
  double over = static_cast<double>(episode) / episodes;
  if (!by_number()) over = std::max(over, spent());
  const bool tried = settings_.improves && over > kUntried && episode % kEachGreedy == 0;
  if (tried || episode == episodes || (goes_on && episode == 1)) return 0;
  return (goes_on ? kRandomAfterwards : 1.0) * std::max(1 - over, 0.0);
}

/// The network that played a greedy episode better than all before it is kept.
void Training::keep_if_best(const EpisodeOutcome& outcome, const std::string& network) {
  const std::optional<double> overhead = record_.episodes.back().overhead;
  if (!outcome.greedy || !overhead || network.empty()) return;
  if (record_.greedy && *overhead >= *record_.greedy) return;
  record_.greedy = overhead;
  best_network_ = network;
}

/// Nothing stalls and nothing is recomputed.
bool Training::nothing_is_better() const {
  return !found_.empty() &&
         found_.front().time <= compute_time(lowering_.program(), environment_.algorithms());
}

void Training::add(const EpisodeOutcome& outcome) {
  QLearningEpisode& episode = record_.episodes.emplace_back();
  episode.steps = agent_.steps();
  episode.episode_return = outcome.episode_return;
  episode.loss = outcome.loss;
  episode.greedy = outcome.greedy;
  if (outcome.feasible) {
    if (const auto time = remember(environment_.strategy())) {
      episode.overhead = overhead(*time, unlimited_);
      best_episode_ = std::min(best_episode_.value_or(*episode.overhead), *episode.overhead);
    }
  }
  episode.best = best_episode_;
}

std::optional<Nanos> Training::remember(const Strategy& strategy) {
  options_.allowance.spend(1);
  const auto time = evaluated_time(lowering_, options_.budget, strategy);
  if (!time) return std::nullopt;
  const auto known = [&](const FoundStrategy& f) { return f.strategy.gaps == strategy.gaps; };
  if (!std::ranges::any_of(found_, known)) {
    found_.insert(std::ranges::upper_bound(found_, *time, {}, &FoundStrategy::time),
                  {*time, strategy});
  }
  if (found_.size() > kRemembered) found_.pop_back();
  if (settings_.improves) try_place(*time, strategy);
  return time;
}

/// At most half of the time goes into this.
void Training::try_place(Nanos time, const Strategy& strategy) {
  if (!options_.place || (placed_ && time >= placed_->time)) return;
  const auto begun = Allowance::Clock::now();
  const bool counted = by_number() || options_.allowance.repeats();
  if (!counted && placed_ && 2 * placing_ > begun - begun_) return;
  const auto placed = options_.place(strategy);
  if (placed && (!placed_ || *placed < placed_->time)) placed_ = {*placed, strategy};
  placing_ += Allowance::Clock::now() - begun;
}

void Training::play_again(Bytes limit) {
  const std::vector<FoundStrategy> before = std::exchange(found_, {});
  for (const FoundStrategy& one : before) {
    if (agent_.follow(limit, &one.strategy, options_.stop).feasible) {
      remember(environment_.strategy());
    }
  }
}

}  // namespace tidepool::dqn
