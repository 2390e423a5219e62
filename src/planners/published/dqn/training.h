// Training: the agent learns under one load limit, episode by episode, and the best strategies it
// finds are remembered.
//
// Note [Greedy episodes]. An action is random iff a uniform draw is above episode / episodes, as in
// the paper. Beside that, unless QLearning::improves is off, one episode in four is greedy when two
// fifths are over, as is the last; of a network that goes on with another graph also the first.
// They count like the others and are learned from. The network whose greedy episode was the best is
// the result of the training: the steps after it may have made it worse.
//
// Note [Mutations]. An episode from which the network learns takes 0.2 to 2 s, one of random
// actions some ms. So a quarter of all time goes to mutations before the first, and then four times
// as much time as an episode takes goes, behind it, to mutations: of the best strategy so far 5, 15
// or 40 % of the decisions are undone, the rest is played again, and where memory is then short the
// network acts, or chance: whichever has found more in a second until then; by turns where no clock
// decides. What the network played is remembered for its next gradient steps. The best is the
// fastest one with addresses, where any has some: they are looked for whenever a strategy is faster
// than it without. Not in the paper (QLearning::improves).
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "planners/published/dqn/agent.h"
#include "planners/q_learning_record.h"
#include "planners/toolkit/allowance.h"

namespace tidepool::dqn {

/// By the evaluator under the budget; nothing where the strategy cannot be carried out.
std::optional<Nanos> evaluated_time(Lowering& lowering, Bytes budget, const Strategy& strategy);
/// EnvironmentOptions::settle by that. `lowering` must outlive it.
std::function<std::optional<double>(const Strategy&)> evaluated_overhead(
    Lowering& lowering, Bytes budget, std::span<const std::int32_t> algorithms);

/// A strategy of a complete episode, timed by the evaluator.
struct FoundStrategy {
  Nanos time{};
  Strategy strategy;
};

struct TrainingOptions {
  std::uint64_t seed = 1;
  Bytes limit = 0;   ///< of the episodes' load
  Bytes budget = 0;  ///< the evaluator's load limit
  /// Of the first action to the last, greedy one: by episodes where the settings name a number,
  /// else by what is over of the allowance too.
  Allowance allowance = Allowance::unlimited();
  Stop stop;     ///< asked to, or late
  Stop asked{};  ///< asked to: the first try of `prepare` may be late, by a second at most
  std::function<void(const QLearningRecord&, std::int32_t episodes)> seen;  ///< after each
  /// Gives addresses to a strategy that is faster than all that have some: how long it takes then.
  /// Nothing where it has none, or is no faster with them.
  std::function<std::optional<Nanos>(const Strategy&)> place{};
};

/// Not thread-safe.
class Training {
 public:
  /// All must outlive this. `network`: null where all actions are random.
  Training(Lowering& lowering, Environment& environment, QNetwork* network,
           const QLearning& settings, TrainingOptions options);

  /// The episodes; where the settings say greedy, one of the network as it is.
  void run();

  /// Tries random actions. Where these rarely find a way in the limit it becomes the budget. What
  /// they cost is the unit of rewards for the network, and out of memory is worse than all of them.
  /// The best of them is what was found where time is up before an episode ends.
  void prepare();
  [[nodiscard]] Bytes limit() const { return options_.limit; }

  /// Plays what another planner has decided, as far as it consists of actions here: the network may
  /// learn from it, and mutations begin with it.
  void begin_with(const Strategy& strategy);

  /// Plays each found strategy again under another limit; what else has to leave there the network
  /// decides. What it finds takes the place of what was found.
  void play_again(Bytes limit);

  [[nodiscard]] const QLearningRecord& record() const { return record_; }
  /// The fastest first; no two are the same.
  [[nodiscard]] const std::vector<FoundStrategy>& found() const { return found_; }
  [[nodiscard]] std::int64_t steps() const { return agent_.steps(); }

 private:
  static constexpr std::int32_t kEpisodes = 150;  ///< where nobody names a number
  static constexpr std::size_t kRemembered = 8;

  [[nodiscard]] bool by_number() const { return settings_.episodes > 0; }
  void learn();
  bool try_random();
  [[nodiscard]] bool nothing_is_better() const;
  [[nodiscard]] double spent() const;
  void spend();
  void add(const EpisodeOutcome& outcome);
  [[nodiscard]] double random_part(std::int32_t episode, std::int32_t episodes) const;
  void try_mutations(Allowance::Clock::duration time);
  void try_mutation(bool by_network);
  [[nodiscard]] bool network_pays() const;
  [[nodiscard]] Strategy mutated(const Strategy& strategy);
  void keep_if_best(const EpisodeOutcome& outcome, const std::string& network);
  /// How long it takes, where the evaluator can make it.
  std::optional<Nanos> remember(const Strategy& strategy);
  void try_place(Nanos time, const Strategy& strategy);
  /// With addresses where some has them.
  [[nodiscard]] const FoundStrategy& best() const { return placed_ ? *placed_ : found_.front(); }

  Lowering& lowering_;
  Environment& environment_;
  QNetwork* network_;
  const QLearning& settings_;
  TrainingOptions options_;
  Agent agent_;
  Agent random_;
  Random mutations_;
  Nanos unlimited_;
  QLearningRecord record_;
  std::optional<double> best_episode_;  ///< the least overhead of an episode
  std::string best_network_;            ///< bytes of the network of the best greedy episode
  std::vector<FoundStrategy> found_;
  std::optional<FoundStrategy> tried_;    ///< the best of `prepare`
  std::optional<FoundStrategy> placed_;   ///< the fastest with addresses
  Allowance::Clock::duration placing_{};  ///< spent on addresses
  Allowance::Clock::time_point begun_ = Allowance::Clock::now();
  Allowance::Clock::duration time_;  ///< of the whole
  std::int64_t evaluations_ = 0;     ///< of the whole
  std::int64_t simulations_spent_ = 0;
  Allowance::Clock::duration by_network_{};  ///< spent on mutations
  Allowance::Clock::duration at_random_{};
};

}  // namespace tidepool::dqn
