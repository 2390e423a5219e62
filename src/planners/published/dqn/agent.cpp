#include "planners/published/dqn/agent.h"

#include <algorithm>
#include <utility>

#include "base/at.h"

namespace tidepool::dqn {

Agent::Agent(Environment& environment, QNetwork* network, const QLearning& settings,
             std::uint64_t seed)
    : environment_(environment),
      network_(network),
      settings_(settings),
      random_(seed),
      replay_(hash_combine(seed, 1)) {
  if (network_ != nullptr) network_->set_graph(environment.graph());
}

/// Where doing nothing would run out of memory it is left out.
std::int32_t Agent::random_action() {
  const std::vector<std::int32_t>& valid = environment_.state().valid;
  if (environment_.must_act()) return valid[random_.below(valid.size())];
  const std::uint64_t drawn = random_.below(valid.size() + 1);
  return drawn == 0 ? 0 : valid[drawn - 1];
}

std::int32_t Agent::best_action() {
  const AgentState& state = environment_.state();
  const std::vector<float> values = network_->values(state);
  const auto first = values.begin() + (environment_.must_act() ? 1 : 0);
  const auto best = std::max_element(first, values.end()) - values.begin();
  return best == 0 ? 0 : state.valid[static_cast<std::size_t>(best) - 1];
}

EpisodeOutcome Agent::learn(Bytes limit, double greedy_part, const Stop& stop) {
  EpisodeOutcome outcome;
  const std::int64_t before = steps_;
  std::vector<Transition> episode;
  environment_.begin(limit);
  while (!environment_.terminal()) {
    if (stop.requested()) {
      outcome.stopped = true;
      return outcome;
    }
    const bool random = network_ == nullptr || random_.uniform() > greedy_part;
    if (random) outcome.greedy = false;
    Transition transition;
    transition.state = environment_.state();
    transition.action = random ? random_action() : best_action();
    transition.reward = static_cast<float>(scale_ * environment_.act(transition.action));
    transition.next = environment_.state();
    transition.terminal = environment_.terminal();
    ++steps_;
    if (network_ == nullptr) continue;
    episode.push_back(std::move(transition));
  }
  outcome.feasible = environment_.feasible();
  outcome.episode_return = environment_.episode_return();
  if (network_ == nullptr) return outcome;
  remember(std::move(episode));
  learn_from_memory(outcome, before, stop);
  return outcome;
}

/// Each with the rewards that follow, as far as they are to reach, discounted.
void Agent::remember(std::vector<Transition> episode) {
  const auto count = static_cast<std::ptrdiff_t>(episode.size());
  const std::ptrdiff_t reach = settings_.reach > 0 ? settings_.reach : count;
  for (std::ptrdiff_t i = 0; i < count; ++i) {
    const std::ptrdiff_t last = std::min(i + reach, count) - 1;
    Transition& of = episode[static_cast<std::size_t>(i)];
    double reward = of.reward;
    double discount = settings_.discount;
    for (std::ptrdiff_t k = i + 1; k <= last; ++k, discount *= settings_.discount) {
      reward += discount * episode[static_cast<std::size_t>(k)].reward;
    }
    of.reward = static_cast<float>(reward);
    of.discount = static_cast<float>(discount);
    of.next = episode[static_cast<std::size_t>(last)].next;
    of.terminal = last == count - 1;
  }
  for (Transition& of : episode) memory_.add(std::move(of));
}

/// As many steps as the decisions since `before` ask for.
void Agent::learn_from_memory(EpisodeOutcome& outcome, std::int64_t before, const Stop& stop) {
  const auto batch = at(std::max(settings_.batch, 1));
  const std::int64_t each = std::max(settings_.decisions_a_step, 1);
  if (memory_.size() < batch) return;
  int steps = 0;
  for (auto i = before / each; i < steps_ / each && !stop.requested(); ++i, ++steps) {
    outcome.loss += network_->learn(memory_.sample(batch, replay_));
  }
  if (steps > 0) outcome.loss /= steps;
}

/// kNone where none of its actions is valid.
std::int32_t Agent::action_of(const Strategy& strategy) const {
  for (const std::int32_t node : environment_.state().valid) {
    const NodeEvent& event = environment_.events().nodes[at(node)];
    const GapId gap = environment_.gaps()[at(event.gap)].gap;
    const Decision decision = strategy.gaps[at(gap)];
    const bool away = decision == Decision::swap || decision == Decision::drop;
    if (event.action == ActionKind::offload ? away : decision == Decision::recompute) return node;
  }
  return kNone;
}

EpisodeOutcome Agent::follow(Bytes limit, const Strategy* first, const Stop& stop, Follow how) {
  EpisodeOutcome outcome;
  std::vector<Transition> episode;
  const bool remembers = how == Follow::remembered && network_ != nullptr;
  environment_.begin(limit);
  while (!environment_.terminal()) {
    if (stop.requested()) {
      outcome.stopped = true;
      return outcome;
    }
    std::int32_t action = first != nullptr ? action_of(*first) : std::int32_t{kNone};
    if (first != nullptr && action == kNone && !environment_.must_act()) action = 0;
    if (action == kNone) action = network_ != nullptr ? best_action() : random_action();
    Transition transition;
    if (remembers) transition.state = environment_.state();
    const double reward = environment_.act(action);
    if (!remembers) continue;
    transition.action = action;
    transition.reward = static_cast<float>(scale_ * reward);
    transition.next = environment_.state();
    transition.terminal = environment_.terminal();
    episode.push_back(std::move(transition));
  }
  outcome.feasible = environment_.feasible();
  outcome.episode_return = environment_.episode_return();
  if (remembers) remember(std::move(episode));
  return outcome;
}

}  // namespace tidepool::dqn
