#include "planners/dqn/training.h"

#include <algorithm>
#include <utility>

#include "base/random.h"
#include "lower/overhead.h"

namespace tidepool::dqn {
namespace {

constexpr std::uint64_t kActions = 1;  // streams of random numbers
constexpr std::uint64_t kTries = 2;

}  // namespace

Training::Training(Lowering& lowering, Environment& environment, QNetwork* network,
                   const QLearning& settings, TrainingOptions options)
    : lowering_(lowering),
      environment_(environment),
      settings_(settings),
      options_(std::move(options)),
      agent_(environment, network, settings, hash_combine(options_.seed, kActions)),
      random_(environment, nullptr, settings, hash_combine(options_.seed, kTries)),
      unlimited_(unlimited_time(lowering.program(), lowering.machine(), environment.algorithms())),
      time_(options_.allowance.time_left()),
      evaluations_(options_.allowance.evaluations_left()) {}

void Training::find_limit() {
  constexpr int kMostTries = 10;
  for (int i = 0; i < kMostTries; ++i) {
    if (random_.follow(options_.limit, nullptr, options_.stop).feasible) return;
  }
  options_.limit = options_.budget;
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
  if (settings_.greedy) {
    const EpisodeOutcome outcome = agent_.follow(options_.limit, nullptr, options_.stop);
    if (!outcome.stopped) add(outcome);
    return;
  }
  const std::int32_t episodes = by_number() ? settings_.episodes : kEpisodes;
  for (std::int32_t i = 1; i <= episodes; ++i) {
    spend();
    if (options_.stop.requested() || options_.allowance.used_up()) return;
    double greedy_part = static_cast<double>(i) / episodes;
    if (!by_number()) greedy_part = std::max(greedy_part, spent());
    const EpisodeOutcome outcome = agent_.learn(options_.limit, greedy_part, options_.stop);
    if (outcome.stopped) return;
    add(outcome);
    if (options_.seen) options_.seen(record_, episodes);
  }
}

void Training::add(const EpisodeOutcome& outcome) {
  QLearningEpisode& episode = record_.episodes.emplace_back();
  episode.steps = agent_.steps();
  episode.episode_return = outcome.episode_return;
  episode.loss = outcome.loss;
  episode.greedy = outcome.greedy;
  if (outcome.feasible) {
    if (const auto time = remember(environment_.strategy())) {
      episode.feasible = true;
      episode.overhead = overhead(*time, unlimited_);
    }
  }
  episode.best = found_.empty() ? -1 : overhead(found_.front().time, unlimited_);
}

/// How long it takes, where the evaluator can make it.
std::optional<Nanos> Training::remember(const Strategy& strategy) {
  options_.allowance.spend(1);
  EvaluateOptions options;
  options.load_limit = options_.budget;
  const Evaluation evaluation = lowering_.evaluator().evaluate(strategy, options);
  if (!evaluation.feasible) return std::nullopt;
  const Nanos time = evaluation.iteration_time;
  const auto known = [&](const FoundStrategy& f) { return f.strategy.gaps == strategy.gaps; };
  if (!std::ranges::any_of(found_, known)) {
    found_.insert(std::ranges::upper_bound(found_, time, {}, &FoundStrategy::time),
                  {time, strategy});
  }
  if (found_.size() > kRemembered) found_.pop_back();
  return time;
}

Strategy Training::hinted() {
  Strategy s = environment_.strategy();
  const Program& program = lowering_.program();
  for (const Departure& d : environment_.departures()) {
    if (s.gaps[std::size_t(d.gap)] != Decision::swap) continue;
    const Gap& gap = lowering_.index().gaps()[std::size_t(d.gap)];
    OpId op = d.op;
    if (d.at_end || op == gap.from) {
      ++op;
      while (program.ops[std::size_t(op)].place != OpPlace::device) ++op;
    }
    CopyHint hint;
    hint.gap = d.gap;
    if (op <= gap.to) {
      hint.out_trigger = op;
      s.hints.push_back(hint);
    }
  }
  return s;
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
