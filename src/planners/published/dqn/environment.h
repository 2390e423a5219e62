// Environment: what the agent acts in (DQN paper, sections 4.4 to 4.8). States, actions and rewards
// are the paper's as far as it says; the rest:
//
// Note [Environment]. The agent walks along the nodes of IterationEvents.
// - An action is valid when its gap has begun and not ended, its tensor has no action in it yet,
// and
//   it frees memory at an op whose load still exceeds the limit. It stays valid until then, not
//   only at its own node.
// - A tensor that wraps (weights and their momenta) is in its gap when the iteration begins: the
//   action counts for the end of the iteration too, in which the copy out runs. That is not waited
//   for by the agent.
// - After "nothing" the agent goes on to the next node at which an action becomes valid (the paper:
//   to the next node), after "remove" by one node, after an offload to the first node that is not
//   before its end. It never passes the op that has too little memory while it can still act, but
//   by "nothing": that is out of memory, a penalty, and the end.
// - The reward is minus the growth of the simulated iteration over its time without a budget. The
//   last one settles the difference to what the whole really costs (EnvironmentOptions::settle), so
//   that the sum over an episode is minus the overhead.
// - The end: no load exceeds the limit any more.
// - An action that `lower` could not carry out has no effect and is not offered again.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "lower/lower.h"
#include "planners/published/dqn/iteration_events.h"
#include "planners/published/dqn/simulator.h"
#include "planners/toolkit/strategy_builder.h"

namespace tidepool::dqn {

struct EnvironmentOptions {
  bool offload = true;
  bool remove = true;
  bool skip = true;       ///< "nothing" goes on to the next node with a new action
  bool alongside = true;  ///< a copy out begins with the op that reads, not behind it
  double penalty = 1;     ///< for running out of memory
  /// What complete decisions really cost, as an overhead; nothing where they cannot be carried out,
  /// which counts as out of memory. Empty: what the simulation says.
  std::function<std::optional<double>(const Strategy&)> settle{};
};

/// Not thread-safe.
class Environment {
 public:
  /// `lowering` must outlive this. One algorithm per op. `least_limit`: the least load limit that
  /// episodes will have; it says which gaps are worth an action.
  Environment(const Lowering& lowering, std::vector<std::int32_t> algorithms, Bytes least_limit,
              EnvironmentOptions options);

  [[nodiscard]] const EventGraph& graph() const { return events_.graph; }
  [[nodiscard]] const IterationEvents& events() const { return events_; }
  [[nodiscard]] std::span<const ActionGap> gaps() const { return gaps_; }
  [[nodiscard]] const std::vector<std::int32_t>& algorithms() const { return algorithms_; }

  /// A new episode.
  void begin(Bytes limit);

  [[nodiscard]] const AgentState& state() const { return state_; }
  [[nodiscard]] bool terminal() const { return terminal_; }
  /// Terminal, and not out of memory.
  [[nodiscard]] bool feasible() const { return terminal_ && !out_of_memory_; }
  void set_penalty(double penalty) { options_.penalty = penalty; }
  /// Doing nothing would run out of memory.
  [[nodiscard]] bool must_act() const;

  /// Node 0 or one of the valid ones; not at the end. Returns the reward.
  double act(std::int32_t node);

  /// Of the decisions so far.
  [[nodiscard]] double overhead() const;
  [[nodiscard]] double episode_return() const { return return_; }
  [[nodiscard]] const Strategy& strategy() { return builder_->strategy(); }
  /// Copies out in the order of the decisions.
  [[nodiscard]] std::span<const Departure> departures() const { return departures_; }
  [[nodiscard]] Nanos unlimited_time() const { return unlimited_; }
  /// Of all episodes.
  [[nodiscard]] std::int64_t simulations() const { return simulations_; }

 private:
  [[nodiscard]] const Gap& gap(std::int32_t i) const;
  void decide_nothing();
  void simulate();
  bool decide(const NodeEvent& action);
  void find_valid();
  [[nodiscard]] bool of_use(std::int32_t i, OpId now) const;
  double give_reward();
  void settle();
  [[nodiscard]] std::int32_t next_stop() const;
  [[nodiscard]] std::int32_t landing(Nanos end) const;
  [[nodiscard]] std::int32_t next_node() const;
  [[nodiscard]] bool passes_blocked(std::int32_t node) const;
  [[nodiscard]] Nanos time(std::int32_t node) const;
  void end(bool out_of_memory);

  const Lowering& lowering_;
  std::vector<std::int32_t> algorithms_;
  EnvironmentOptions options_;
  std::vector<ActionGap> gaps_;
  IterationEvents events_;
  IterationSimulator simulator_;
  Nanos unlimited_{};
  std::int64_t simulations_ = 0;
  // Of an episode.
  Bytes limit_ = 0;
  std::optional<StrategyBuilder> builder_;
  std::vector<char> decided_;  ///< per gap
  std::vector<char> refused_;  ///< per node
  std::vector<Departure> departures_;
  SimulatedIteration now_;
  double settled_ = 0;              ///< at the end of a feasible episode: its overhead
  double accounted_ = 0;            ///< the overhead that rewards have been given for
  std::vector<std::int32_t> over_;  ///< ops over the limit before each op
  AgentState state_;
  double return_ = 0;
  bool terminal_ = false;
  bool out_of_memory_ = false;
};

}  // namespace tidepool::dqn
