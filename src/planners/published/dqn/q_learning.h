// QLearning: what the planners that learn a Q-network are told, and the records of their options.
// Both are here without libtorch too: messages and help name the options of planners that a build
// goes without.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/option.h"

namespace tidepool {

struct QLearning {
  std::int32_t episodes = 0;  ///< 0: until the time limit, or the planner's own number
  double learning_rate = 3e-3;
  double discount = 0.99;
  std::int32_t width = 64;  ///< of node states
  std::int32_t hops = 4;
  std::int32_t batch = 32;
  std::int32_t reach = 0;  ///< rewards in a target; 0: all to the end; 1: as in the paper
  /// Begins with plans of other planners, and between episodes undoes a part of the best strategy
  /// and fills it up anew. False: Algorithm 1 alone, as in the paper.
  bool improves = true;
  std::int32_t decisions_a_step = 3;  ///< of the agent, for one gradient step
  bool uniform = false;               ///< all actions uniformly random; nothing is learned
  bool greedy = false;                ///< one episode of `network`, and nothing is learned
  std::string network;                ///< bytes of a saved one to go on from; empty: a new one

  bool operator==(const QLearning&) const = default;
};

std::span<const OptionRecord> q_learning_options();
/// That of a saved network alone.
std::span<const OptionRecord> network_option();
/// Width and hops of a network to go on from are its own.
QLearning q_learning_of(const OptionValues& values);
/// Refuses what would change nothing.
Result<void> check_q_learning(const OptionValues& values);

}  // namespace tidepool
