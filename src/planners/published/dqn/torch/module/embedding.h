// Embedding: node states of many agent states (DQN paper, equation 1), and their gradient.
//
// Note [Embedding]. States differ in the validity of actions alone, so what is added in each hop is
// one of two rows for each node: W1 x + W3 sum ReLU(W4 w) with the validity bit at 0 and at 1. Both
// (`constants`) are made once for a version of the weights. As no lag is negative, ReLU(W4 w) is
// w ReLU(W4), and the sum over neighbours is the node's sum of lags times that. S^1 is ReLU of
// these rows, so its product with W2 (`products`) is made once too. Each further hop of a state is
// one product and one sum over neighbours, in matrices of one state that stay in the CPU's cache.
// W2 is applied before the sum over neighbours instead of after it, which is the same.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

#include "planners/published/dqn/q_network.h"
#include "planners/published/dqn/torch/module/graph_sums.h"

namespace tidepool::dqn {

/// What is the same in all states: functions of the weights, with their gradient.
struct EmbeddingTables {
  at::Tensor constants;  ///< [2, nodes, width]: by the validity bit
  at::Tensor products;   ///< [2, nodes, width]: ReLU(constants) times W2; empty with one hop
};

class Embedding {
 public:
  /// The graph must outlive it.
  Embedding(const EventGraph& graph, std::int32_t width, std::int32_t hops);

  /// W1 to W4.
  [[nodiscard]] EmbeddingTables tables(const at::Tensor& w1, const at::Tensor& w2,
                                       const at::Tensor& w3, const at::Tensor& w4) const;

  /// S^T of one state, [nodes, width], without gradient: valid until the next call.
  at::Tensor states(const EmbeddingTables& tables, const at::Tensor& w2, const AgentState& state);

  struct Sample {
    const AgentState* state = nullptr;
    std::int32_t action = 0;
  };
  /// Of each sample [3, width]: the mean of the node states, that of the node under execution and
  /// that of the action; with gradient, which may be asked for once, before the next call.
  at::Tensor summaries(const EmbeddingTables& tables, const at::Tensor& w2,
                       std::vector<Sample> samples);

  // Of the gradient.
  struct Gradients {
    at::Tensor constants;
    at::Tensor products;
    at::Tensor w2;
  };
  at::Tensor summaries_forward(const EmbeddingTables& tables, const at::Tensor& w2);
  Gradients summaries_backward(const EmbeddingTables& tables, const at::Tensor& w2,
                               const at::Tensor& gradient);

 private:
  void pick(const AgentState& state);
  [[nodiscard]] PickedRows picked(const at::Tensor& two) const;
  /// S^2 to S^T into `hops` ([hops - 1, nodes, width]), or S^1 where there is one hop.
  void forward(const EmbeddingTables& tables, const at::Tensor& w2, const at::Tensor& hops);
  void backward(const at::Tensor& w2, const at::Tensor& hops, Gradients& gradients);

  const EventGraph* graph_;
  std::int64_t nodes_;
  std::int64_t width_;
  std::int64_t hops_;
  at::Tensor features_;             ///< [nodes, 5]
  at::Tensor lags_;                 ///< [nodes, 1]: sums over the neighbours
  std::vector<std::uint8_t> pick_;  ///< of the state at hand: which actions are valid
  std::vector<Sample> samples_;
  at::Tensor kept_;     ///< [samples, kept hops, nodes, width]
  at::Tensor product_;  ///< [nodes, width], and so the next two
  at::Tensor gradient_;
  at::Tensor sums_;
};

}  // namespace tidepool::dqn
