// A network without one: a table with a value for each action node, whatever the state.
#pragma once

#include <algorithm>
#include <memory>

#include "base/at.h"
#include "planners/published/dqn/q_network.h"

namespace tidepool::testing {

class TableNetwork : public dqn::QNetwork {
 public:
  explicit TableNetwork(const dqn::QNetworkOptions& options) : options_(options) {}

  void set_graph(const dqn::EventGraph& graph) override {
    value_.resize(at(std::max(graph.nodes(), static_cast<std::int32_t>(value_.size()))), 0);
  }
  std::vector<float> values(const dqn::AgentState& state) override {
    std::vector<float> all{value_[0]};
    for (const std::int32_t node : state.valid) all.push_back(value_[at(node)]);
    return all;
  }
  double learn(std::span<const dqn::Transition* const> batch) override {
    double loss = 0;
    for (const dqn::Transition* t : batch) {
      const std::vector<float> all = values(t->next);
      const double next =
          t->terminal ? 0 : *std::max_element(all.begin() + (t->next.must_act ? 1 : 0), all.end());
      const double error = t->reward + t->discount * next - value_[at(t->action)];
      loss += error * error / static_cast<double>(batch.size());
      value_[at(t->action)] += static_cast<float>(options_.learning_rate * error);
    }
    return loss;
  }
  [[nodiscard]] std::string save() const override {
    return {reinterpret_cast<const char*>(value_.data()), value_.size() * sizeof(float)};
  }
  Result<void> load(std::string_view saved) override {
    value_.resize(saved.size() / sizeof(float));
    std::ranges::copy(saved, reinterpret_cast<char*>(value_.data()));
    return {};
  }

 private:
  dqn::QNetworkOptions options_;
  std::vector<float> value_;
};

inline Result<std::unique_ptr<dqn::QNetwork>> make_table_network(
    const dqn::QNetworkOptions& options) {
  return std::make_unique<TableNetwork>(options);
}

}  // namespace tidepool::testing
