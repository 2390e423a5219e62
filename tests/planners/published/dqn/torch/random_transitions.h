// Random event graphs, and random transitions on them.
#pragma once

#include <algorithm>
#include <vector>

#include "base/random.h"
#include "planners/published/dqn/q_network.h"

namespace tidepool::dqn {

/// A chain of events; some are joined with a later one, as those of a tensor are.
inline EventGraph random_graph(std::int32_t nodes, Random& random) {
  std::vector<std::vector<std::pair<std::int32_t, float>>> lists(static_cast<std::size_t>(nodes));
  const auto join = [&](std::int32_t u, std::int32_t v) {
    const auto lag = static_cast<float>(random.uniform());
    lists[static_cast<std::size_t>(u)].emplace_back(v, lag);
    if (u != v) lists[static_cast<std::size_t>(v)].emplace_back(u, lag);
  };
  const auto below = [&](std::int32_t n) {
    return static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(n)));
  };
  for (std::int32_t v = 0; v < nodes; ++v) {
    join(v, v);
    if (v > 0) join(v - 1, v);
    if (v > 1) join(below(v - 1), v);
  }
  EventGraph graph;
  for (std::int32_t v = 0; v < nodes; ++v) {
    graph.first_neighbour.push_back(static_cast<std::int32_t>(graph.neighbours.size()));
    for (const auto& [u, lag] : lists[static_cast<std::size_t>(v)]) {
      graph.neighbours.push_back(u);
      graph.lags.push_back(lag);
    }
    auto& features = graph.features.emplace_back();
    for (float& x : features) x = static_cast<float>(random.uniform());
    features[4] = static_cast<float>(below(3)) / 2;
  }
  graph.first_neighbour.push_back(static_cast<std::int32_t>(graph.neighbours.size()));
  return graph;
}

inline AgentState random_state(std::int32_t nodes, Random& random) {
  AgentState state;
  state.current = static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(nodes)));
  for (std::int32_t v = 1; v < nodes; ++v) {
    if (random.below(4) == 0) state.valid.push_back(v);
  }
  return state;
}

inline std::vector<Transition> random_transitions(std::int32_t nodes, std::size_t count,
                                                  Random& random) {
  std::vector<Transition> transitions(count);
  for (Transition& t : transitions) {
    t.state = random_state(nodes, random);
    t.next = random_state(nodes, random);
    const std::size_t taken = random.below(t.state.valid.size() + 1);
    t.action = taken == 0 ? 0 : t.state.valid[taken - 1];
    t.reward = static_cast<float>(-random.uniform());
    t.discount = static_cast<float>(random.uniform());
    t.terminal = random.below(4) == 0;
    t.next.must_act = !t.next.valid.empty() && random.below(2) == 0;
  }
  return transitions;
}

inline std::vector<const Transition*> pointers(const std::vector<Transition>& transitions) {
  std::vector<const Transition*> all;
  for (const Transition& t : transitions) all.push_back(&t);
  return all;
}

}  // namespace tidepool::dqn
