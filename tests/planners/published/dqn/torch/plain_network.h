// The Q-network as the paper prints it (equations 1 to 3), in double and without a library: slow.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "planners/published/dqn/network_weights.h"
#include "planners/published/dqn/q_network.h"

namespace tidepool::dqn {

class PlainNetwork {
 public:
  PlainNetwork(const EventGraph& graph, const NetworkWeights& weights)
      : graph_(graph), weights_(weights), p_(static_cast<std::size_t>(weights.width)) {}

  /// Of one action.
  [[nodiscard]] double value(const AgentState& state, std::int32_t action) const {
    const auto states = node_states(state);
    const Vector mean = [&] {
      Vector sum(p_, 0);
      for (const Vector& s : states) add(sum, s);
      for (double& x : sum) x /= static_cast<double>(states.size());
      return sum;
    }();
    Vector all = product(5, mean);
    for (const double x : product(6, states[static_cast<std::size_t>(state.current)])) {
      all.push_back(x);
    }
    for (const double x : product(8, states[static_cast<std::size_t>(action)])) all.push_back(x);
    rectify(all);
    return product(7, all).front();
  }

  [[nodiscard]] std::vector<double> values(const AgentState& state) const {
    std::vector<double> values{value(state, 0)};
    for (const std::int32_t action : state.valid) values.push_back(value(state, action));
    return values;
  }

  [[nodiscard]] double loss(std::span<const Transition* const> batch,
                            const PlainNetwork& of_targets) const {
    double sum = 0;
    for (const Transition* t : batch) {
      double y = t->reward;
      if (!t->terminal) {
        const auto next = of_targets.values(t->next);
        const auto first = next.begin() + (t->next.must_act ? 1 : 0);
        y += t->discount * std::min(*std::max_element(first, next.end()), 0.0);
      }
      const double error = y - value(t->state, t->action);
      sum += error * error;
    }
    return sum / static_cast<double>(batch.size());
  }

 private:
  using Vector = std::vector<double>;

  static void add(Vector& to, const Vector& from) {
    for (std::size_t i = 0; i < to.size(); ++i) to[i] += from[i];
  }
  static void rectify(Vector& v) {
    for (double& x : v) x = std::max(x, 0.0);
  }
  /// W_number times a column.
  [[nodiscard]] Vector product(std::size_t number, const Vector& column) const {
    const auto& matrix = weights_.matrices[number - 1];
    Vector result(matrix.size() / column.size(), 0);
    for (std::size_t r = 0; r < result.size(); ++r) {
      for (std::size_t c = 0; c < column.size(); ++c) {
        result[r] += double{matrix[r * column.size() + c]} * column[c];
      }
    }
    return result;
  }

  [[nodiscard]] std::vector<Vector> node_states(const AgentState& state) const {
    const std::size_t nodes = graph_.features.size();
    std::vector<Vector> states(nodes, Vector(p_, 0));
    for (std::int32_t hop = 0; hop < weights_.hops; ++hop) {
      std::vector<Vector> next;
      for (std::size_t v = 0; v < nodes; ++v) {
        Vector features(graph_.features[v].begin(), graph_.features[v].end());
        const bool valid =
            std::ranges::find(state.valid, static_cast<std::int32_t>(v)) != state.valid.end();
        features.push_back(valid ? 1 : 0);
        Vector around(p_, 0);
        Vector lags(p_, 0);
        for (auto e = static_cast<std::size_t>(graph_.first_neighbour[v]);
             e < static_cast<std::size_t>(graph_.first_neighbour[v + 1]); ++e) {
          add(around, states[static_cast<std::size_t>(graph_.neighbours[e])]);
          Vector lag = product(4, {double{graph_.lags[e]}});
          rectify(lag);
          add(lags, lag);
        }
        Vector sum = product(1, features);
        add(sum, product(2, around));
        add(sum, product(3, lags));
        rectify(sum);
        next.push_back(std::move(sum));
      }
      states = std::move(next);
    }
    return states;
  }

  const EventGraph& graph_;
  const NetworkWeights& weights_;
  std::size_t p_;
};

}  // namespace tidepool::dqn
