// The module's side of torch_module.h: equations 2 to 5, the optimiser, and the threads.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <omp.h>
#include <torch/optim/adam.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "planners/published/dqn/torch/module/embedding.h"
#include "planners/published/dqn/torch/torch_module.h"

namespace tidepool::dqn {
namespace {

/// libtorch sets OpenMP's number of threads for the whole of the calling thread. One thread here,
/// where bits depend on their number and matrices are small; afterwards what it was.
class OneThread {
 public:
  OneThread() { at::set_num_threads(1); }
  ~OneThread() { omp_set_num_threads(before_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_ = omp_get_max_threads();
};

constexpr double kMostNorm = 10;  // of the gradients of a step

class TorchCallsOf : public TorchCalls {
 public:
  TorchCallsOf(const QNetworkOptions& options, const NetworkWeights& weights) : options_(options) {
    const OneThread one;
    const auto shapes = matrix_shapes(options.width);
    for (const auto& [rows, columns] : shapes) {
      weights_.push_back(at::zeros({rows, columns}));
      weights_.back().requires_grad_(true);
    }
    fill(weights);
  }

  void set_graph(const EventGraph& graph) override {
    const OneThread one;
    embedding_.emplace(graph, options_.width, options_.hops);
    tables_.reset();
  }

  std::vector<float> values(const AgentState& state) override {
    const OneThread one;
    return plain(values_of(state));
  }

  double learn(std::span<const Transition* const> batch) override;
  NetworkWeights gradients(std::span<const Transition* const> batch) override;
  [[nodiscard]] NetworkWeights weights() const override {
    NetworkWeights weights{options_.width, options_.hops, {}};
    for (std::size_t m = 0; m < weights_.size(); ++m) {
      weights.matrices[m] = plain(weights_[m]);
    }
    return weights;
  }

  void set_weights(const NetworkWeights& weights) override {
    const OneThread one;
    fill(weights);
  }

 private:
  /// W1 to W8.
  [[nodiscard]] const at::Tensor& w(std::size_t number) const { return weights_[number - 1]; }
  /// The part of W7 for W5's (0), W6's (1) and W8's (2) rows.
  [[nodiscard]] at::Tensor w7(std::int64_t part) const {
    return w(7).narrow(1, part * options_.width, options_.width).t();
  }

  static std::vector<float> plain(const at::Tensor& tensor) {
    const at::Tensor dense = tensor.contiguous();
    const float* const first = dense.data_ptr<float>();
    return {first, first + dense.numel()};
  }

  void fill(const NetworkWeights& weights) {
    const at::NoGradGuard none;
    for (std::size_t m = 0; m < weights_.size(); ++m) {
      std::copy(weights.matrices[m].begin(), weights.matrices[m].end(),
                weights_[m].data_ptr<float>());
    }
    std::vector<torch::optim::OptimizerParamGroup> groups;
    const auto sizes = usual_sizes(options_.width);
    for (std::size_t m = 0; m < weights_.size(); ++m) {
      groups.emplace_back(
          std::vector<at::Tensor>{weights_[m]},
          std::make_unique<torch::optim::AdamOptions>(options_.learning_rate * sizes[m]));
    }
    optimiser_.emplace(std::move(groups), torch::optim::AdamOptions(options_.learning_rate));
    tables_.reset();
  }

  const EmbeddingTables& tables() {
    if (!tables_) tables_ = embedding_->tables(w(1), w(2), w(3), w(4));
    return *tables_;
  }

  at::Tensor values_of(const AgentState& state);
  double differentiate(std::span<const Transition* const> batch);
  at::Tensor targets(std::span<const Transition* const> batch);

  QNetworkOptions options_;
  std::vector<at::Tensor> weights_;
  std::optional<torch::optim::Adam> optimiser_;
  std::optional<Embedding> embedding_;
  std::optional<EmbeddingTables> tables_;  ///< of these weights
};

/// Equations 2 and 3, with [g, W8 s_a] in its three parts: the first two are the same for all
/// actions.
at::Tensor TorchCallsOf::values_of(const AgentState& state) {
  const EmbeddingTables& both = tables();
  const at::NoGradGuard none;
  const at::Tensor nodes = embedding_->states(both, w(2), state);
  at::Tensor rows = at::empty({static_cast<std::int64_t>(state.valid.size()) + 1},
                              at::TensorOptions().dtype(at::kLong));
  auto* const row = rows.data_ptr<std::int64_t>();
  row[0] = 0;
  std::copy(state.valid.begin(), state.valid.end(), row + 1);
  const at::Tensor mean = nodes.mean(0, /*keepdim=*/true);
  const at::Tensor current = nodes.narrow(0, state.current, 1);
  const at::Tensor graph = at::mm(at::relu(at::mm(mean, w(5).t())), w7(0)) +
                           at::mm(at::relu(at::mm(current, w(6).t())), w7(1));
  const at::Tensor actions = at::relu(at::mm(nodes.index_select(0, rows), w(8).t()));
  return graph + at::mm(actions, w7(2));
}

/// Equation 5; a constant. Doing nothing counts only where it is an action. No return is above 0: a
/// network that says so of what follows is not believed, or its maxima would raise each other.
at::Tensor TorchCallsOf::targets(std::span<const Transition* const> batch) {
  at::Tensor targets = at::empty({static_cast<std::int64_t>(batch.size()), 1});
  float* target = targets.data_ptr<float>();
  for (const Transition* t : batch) {
    double y = t->reward;
    if (!t->terminal) {
      const at::Tensor values = values_of(t->next);
      const std::int64_t first = t->next.must_act ? 1 : 0;
      const at::Tensor most = values.narrow(0, first, values.size(0) - first).max();
      y += t->discount * std::min(most.item<float>(), 0.0F);
    }
    *target++ = static_cast<float>(y);
  }
  return targets;
}

/// Equation 4, mean over the batch; its gradients are those of the weights then.
double TorchCallsOf::differentiate(std::span<const Transition* const> batch) {
  const at::Tensor y = targets(batch);
  std::vector<Embedding::Sample> samples;
  for (const Transition* t : batch) samples.push_back({&t->state, t->action});
  const at::Tensor parts = embedding_->summaries(tables(), w(2), std::move(samples));
  const auto part = [&](std::int64_t which, std::size_t matrix) {
    return at::mm(at::relu(at::mm(parts.select(1, which), w(matrix).t())), w7(which));
  };
  const at::Tensor q = part(0, 5) + part(1, 6) + part(2, 8);
  const at::Tensor loss = (y - q).square().mean();
  optimiser_->zero_grad();
  loss.backward();
  tables_.reset();
  return static_cast<double>(loss.item<float>());
}

double TorchCallsOf::learn(std::span<const Transition* const> batch) {
  if (batch.empty()) return 0;
  const OneThread one;
  const double loss = differentiate(batch);
  double squares = 0;
  for (const at::Tensor& weight : weights_) {
    if (weight.grad().defined()) squares += std::pow(weight.grad().norm().item<double>(), 2);
  }
  const double norm = std::sqrt(squares);
  if (!std::isfinite(norm)) return loss;
  if (norm > kMostNorm) {
    for (const at::Tensor& weight : weights_) {
      if (weight.grad().defined()) weight.grad().mul_(kMostNorm / norm);
    }
  }
  optimiser_->step();
  return loss;
}

NetworkWeights TorchCallsOf::gradients(std::span<const Transition* const> batch) {
  const OneThread one;
  (void)differentiate(batch);
  NetworkWeights gradients{options_.width, options_.hops, {}};
  for (std::size_t m = 0; m < weights_.size(); ++m) {
    const at::Tensor& weight = weights_[m];
    gradients.matrices[m] = plain(weight.grad().defined() ? weight.grad() : at::zeros_like(weight));
  }
  return gradients;
}

}  // namespace
}  // namespace tidepool::dqn

extern "C" __attribute__((visibility("default"))) tidepool::dqn::TorchCalls* tidepool_torch_calls_2(
    const tidepool::dqn::QNetworkOptions& options, const tidepool::dqn::NetworkWeights& weights);

tidepool::dqn::TorchCalls* tidepool_torch_calls_2(const tidepool::dqn::QNetworkOptions& options,
                                                  const tidepool::dqn::NetworkWeights& weights) {
  return new tidepool::dqn::TorchCallsOf(options, weights);
}
