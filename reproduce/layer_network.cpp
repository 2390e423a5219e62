#include "layer_network.h"

#include <optional>
#include <stdexcept>
#include <utility>

namespace tidepool::reproduce {
namespace {

constexpr Bytes kFloat = 4;

/// None of inputs, which are no layers of a recording. Throws for what no recorded network has.
struct KindOf {
  using Kind = std::optional<LayerKind>;
  Kind operator()(const nn::Input&) const { return std::nullopt; }
  Kind operator()(const nn::Conv2d& conv) const {
    if (conv.groups != 1 || conv.window.height != conv.window.width) return refuse();
    return LayerKind::convolution;
  }
  Kind operator()(const nn::BatchNorm&) const { return LayerKind::batch_norm; }
  Kind operator()(const nn::Relu&) const { return LayerKind::relu; }
  Kind operator()(const nn::MaxPool&) const { return LayerKind::pooling; }
  Kind operator()(const nn::AvgPool&) const { return LayerKind::pooling; }
  Kind operator()(const nn::GlobalAvgPool&) const { return LayerKind::pooling; }
  Kind operator()(const nn::Add&) const { return LayerKind::add; }
  Kind operator()(const nn::Dropout&) const { return LayerKind::dropout; }
  Kind operator()(const nn::Linear&) const { return LayerKind::linear; }
  Kind operator()(const nn::Flatten&) const { return LayerKind::flatten; }
  Kind operator()(const nn::SoftmaxCrossEntropy&) const { return LayerKind::softmax_loss; }
  /// The published recordings have no others.
  template <class Layer>
  Kind operator()(const Layer& /*layer*/) const {
    return refuse();
  }

 private:
  [[noreturn]] static Kind refuse() {
    throw std::logic_error("a layer that no recorded framework has");
  }
};

class Converter {
 public:
  Converter(const nn::Graph& graph, std::int64_t batch) : graph_(graph) {
    network_.name = graph.name;
    network_.batch = batch;
    values_.resize(graph.values.size());
  }

  LayerNetwork convert() {
    provide(graph_.images);
    for (const nn::Layer& layer : graph_.layers) {
      if (const auto kind = std::visit(KindOf{}, layer.spec)) add(layer, *kind);
    }
    return std::move(network_);
  }

 private:
  [[nodiscard]] const nn::Value& value(nn::ValueId id) const {
    return graph_.values[static_cast<std::size_t>(id)];
  }

  void add(const nn::Layer& layer, LayerKind kind) {
    NetworkLayer added;
    added.kind = kind;
    for (const nn::ValueId input : layer.inputs) {
      if (input != graph_.labels) added.inputs.push_back(take(input));
    }
    if (layer.output != graph_.loss) {
      added.in = value(layer.inputs[0]).type.dims[0];
      added.out = value(layer.output).type.dims[0];
    }
    if (const auto* conv = std::get_if<nn::Conv2d>(&layer.spec)) {
      added.window = conv->window.height;
      added.stride = conv->stride;
    }
    network_.layers.push_back(std::move(added));
    if (layer.output != graph_.loss) provide(layer.output);
  }

  std::int32_t new_value(nn::ValueId id) {
    network_.values.push_back(kFloat * network_.batch * value(id).type.elements());
    return static_cast<std::int32_t>(network_.values.size()) - 1;
  }

  /// Made by the last layer; where several layers read it, a fork follows.
  void provide(nn::ValueId id) {
    const std::int32_t made = new_value(id);
    if (!network_.layers.empty()) network_.layers.back().outputs = {made};
    auto& available = values_[static_cast<std::size_t>(id)];
    available = {made};
    const std::size_t readers = value(id).consumers.size();
    if (readers < 2) return;
    available.clear();
    for (std::size_t i = 0; i < readers; ++i) available.push_back(new_value(id));
    network_.layers.push_back({LayerKind::fork, {made}, available});
  }

  /// The value for its next reader.
  std::int32_t take(nn::ValueId id) {
    auto& available = values_[static_cast<std::size_t>(id)];
    const std::int32_t taken = available.front();
    available.erase(available.begin());
    return taken;
  }

  const nn::Graph& graph_;
  LayerNetwork network_;
  std::vector<std::vector<std::int32_t>> values_;  ///< per value: those that nobody has read yet
};

}  // namespace

LayerNetwork layer_network(const nn::Graph& graph, std::int64_t batch) {
  return Converter(graph, batch).convert();
}

}  // namespace tidepool::reproduce
