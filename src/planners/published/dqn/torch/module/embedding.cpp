#include "planners/published/dqn/torch/module/embedding.h"

#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cassert>
#include <utility>

namespace tidepool::dqn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

class Summaries : public torch::autograd::Function<Summaries> {
 public:
  static at::Tensor forward(AutogradContext* context, at::Tensor constants, at::Tensor products,
                            at::Tensor w2, Embedding* embedding) {
    context->save_for_backward({constants, products, w2});
    context->saved_data["embedding"] = reinterpret_cast<std::int64_t>(embedding);
    return embedding->summaries_forward({constants, products}, w2);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    auto* const embedding = reinterpret_cast<Embedding*>(context->saved_data["embedding"].toInt());
    Embedding::Gradients g =
        embedding->summaries_backward({saved[0], saved[1]}, saved[2], gradients[0].contiguous());
    return {g.constants, g.products, g.w2, at::Tensor()};
  }
};

/// to += from.
void add_to(float* to, const float* from, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i] += from[i];
}

}  // namespace

Embedding::Embedding(const EventGraph& graph, std::int32_t width, std::int32_t hops)
    : graph_(&graph),
      nodes_(graph.nodes()),
      width_(width),
      hops_(hops),
      features_(at::empty({nodes_, 5})),
      lags_(at::zeros({nodes_, 1})),
      pick_(static_cast<std::size_t>(nodes_)),
      product_(at::empty({nodes_, width_})),
      gradient_(at::empty({nodes_, width_})),
      sums_(at::empty({nodes_, width_})) {
  auto* features = features_.data_ptr<float>();
  auto* lags = lags_.data_ptr<float>();
  for (std::size_t v = 0; v < graph.features.size(); ++v) {
    features = std::copy(graph.features[v].begin(), graph.features[v].end(), features);
    for (auto e = graph.first_neighbour[v]; e < graph.first_neighbour[v + 1]; ++e) {
      assert(graph.lags[static_cast<std::size_t>(e)] >= 0);
      lags[v] += graph.lags[static_cast<std::size_t>(e)];
    }
  }
}

EmbeddingTables Embedding::tables(const at::Tensor& w1, const at::Tensor& w2, const at::Tensor& w3,
                                  const at::Tensor& w4) const {
  const at::Tensor invalid =
      at::mm(features_, w1.narrow(1, 0, 5).t()) + at::mm(lags_, at::mm(w3, at::relu(w4)).t());
  EmbeddingTables tables;
  tables.constants = at::stack({invalid, invalid + w1.select(1, 5)});
  if (hops_ > 1) {
    tables.products = at::mm(at::relu(tables.constants).view({2 * nodes_, width_}), w2.t())
                          .view({2, nodes_, width_});
  } else {
    tables.products = at::empty({0});
  }
  return tables;
}

void Embedding::pick(const AgentState& state) {
  std::fill(pick_.begin(), pick_.end(), std::uint8_t{0});
  for (const std::int32_t v : state.valid) pick_[static_cast<std::size_t>(v)] = 1;
}

PickedRows Embedding::picked(const at::Tensor& two) const {
  const float* const both = two.data_ptr<float>();
  return {{both, both + nodes_ * width_}, pick_.data()};
}

void Embedding::forward(const EmbeddingTables& tables, const at::Tensor& w2,
                        const at::Tensor& hops) {
  const auto width = static_cast<std::size_t>(width_);
  const PickedRows constants = picked(tables.constants);
  if (hops_ == 1) {
    float* out = hops.data_ptr<float>();
    for (std::size_t v = 0; v < pick_.size(); ++v) {
      const float* const row = constants.row(v, width);
      for (std::size_t i = 0; i < width; ++i) *out++ = row[i] > 0 ? row[i] : 0;
    }
    return;
  }
  PickedRows in = picked(tables.products);
  for (std::int64_t hop = 2; hop <= hops_; ++hop) {
    if (hop > 2) {
      at::mm_out(product_, hops.select(0, hop - 3), w2.t());
      const float* const rows = product_.data_ptr<float>();
      in.matrices = {rows, rows};
    }
    sum_and_rectify(*graph_, width, in, constants, hops.select(0, hop - 2).data_ptr<float>());
  }
}

void Embedding::backward(const at::Tensor& w2, const at::Tensor& hops, Gradients& gradients) {
  const auto width = static_cast<std::size_t>(width_);
  const auto matrix = static_cast<std::size_t>(nodes_) * width;
  float* const gradient = gradient_.data_ptr<float>();
  const auto rectify_and_add = [&](const float* states) {
    float* const to = gradients.constants.data_ptr<float>();
    for (std::size_t v = 0; v < pick_.size(); ++v) {
      const std::size_t row = v * width;
      for (std::size_t i = row; i < row + width; ++i) {
        gradient[i] = states[i] > 0 ? gradient[i] : 0;
      }
      add_to(to + pick_[v] * matrix + row, gradient + row, width);
    }
  };
  if (hops_ == 1) {
    rectify_and_add(hops.data_ptr<float>());
    return;
  }
  for (std::int64_t hop = hops_; hop >= 2; --hop) {
    rectify_and_add(hops.select(0, hop - 2).data_ptr<float>());
    sum_neighbours(*graph_, width, gradient, sums_.data_ptr<float>());
    if (hop > 2) {
      const at::Tensor before = hops.select(0, hop - 3);
      gradients.w2.addmm_(sums_.t(), before);
      at::mm_out(gradient_, sums_, w2);
    } else {
      float* const to = gradients.products.data_ptr<float>();
      const float* const sums = sums_.data_ptr<float>();
      for (std::size_t v = 0; v < pick_.size(); ++v) {
        add_to(to + pick_[v] * matrix + v * width, sums + v * width, width);
      }
    }
  }
}

at::Tensor Embedding::states(const EmbeddingTables& tables, const at::Tensor& w2,
                             const AgentState& state) {
  const at::NoGradGuard none;
  if (!kept_.defined())
    kept_ = at::empty({1, std::max<std::int64_t>(hops_ - 1, 1), nodes_, width_});
  pick(state);
  const at::Tensor hops = kept_.select(0, 0);
  forward(tables, w2, hops);
  return hops.select(0, hops.size(0) - 1);
}

at::Tensor Embedding::summaries(const EmbeddingTables& tables, const at::Tensor& w2,
                                std::vector<Sample> samples) {
  samples_ = std::move(samples);
  return Summaries::apply(tables.constants, tables.products, w2, this);
}

at::Tensor Embedding::summaries_forward(const EmbeddingTables& tables, const at::Tensor& w2) {
  const auto samples = static_cast<std::int64_t>(samples_.size());
  const std::int64_t each = std::max<std::int64_t>(hops_ - 1, 1);
  if (!kept_.defined() || kept_.size(0) < samples) {
    kept_ = at::empty({samples, each, nodes_, width_});
  }
  at::Tensor summaries = at::empty({samples, 3, width_});
  for (std::int64_t i = 0; i < samples; ++i) {
    const Sample& sample = samples_[static_cast<std::size_t>(i)];
    pick(*sample.state);
    const at::Tensor hops = kept_.select(0, i);
    forward(tables, w2, hops);
    const at::Tensor last = hops.select(0, each - 1);
    const at::Tensor of_sample = summaries.select(0, i);
    of_sample.select(0, 0).copy_(last.mean(0));
    of_sample.select(0, 1).copy_(last.select(0, sample.state->current));
    of_sample.select(0, 2).copy_(last.select(0, sample.action));
  }
  return summaries;
}

Embedding::Gradients Embedding::summaries_backward(const EmbeddingTables& tables,
                                                   const at::Tensor& w2,
                                                   const at::Tensor& gradient) {
  const at::NoGradGuard none;
  Gradients gradients;
  gradients.constants = at::zeros_like(tables.constants);
  if (hops_ > 1) {
    gradients.products = at::zeros_like(tables.products);
    gradients.w2 = at::zeros_like(w2);
  }
  for (std::size_t i = 0; i < samples_.size(); ++i) {
    const Sample& sample = samples_[i];
    pick(*sample.state);
    const at::Tensor of_sample = gradient.select(0, static_cast<std::int64_t>(i));
    gradient_.copy_((of_sample.select(0, 0) / nodes_).expand({nodes_, width_}));
    gradient_.select(0, sample.state->current).add_(of_sample.select(0, 1));
    gradient_.select(0, sample.action).add_(of_sample.select(0, 2));
    backward(w2, kept_.select(0, static_cast<std::int64_t>(i)), gradients);
  }
  return gradients;
}

}  // namespace tidepool::dqn
