// ForwardPass and BackwardPass: what one layer writes its ops with, in one round.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "nn/gradient_flow.h"
#include "nn/lowering.h"

namespace tidepool::nn {

/// The same bytes as a matrix with a row for each place of the last dimension; plain layout.
Operand rows_of(const Operand& x);

/// The weight of a convolution in the layout its backward-data reads: itself, or a copy.
Operand weight_for_backward_data(Lowering& lowering, const Layer& layer, const Operand& weight);

struct ForwardPass {
  Lowering& l;
  LayerId id;

  [[nodiscard]] const Layer& layer() const { return l.layer(id); }
  [[nodiscard]] LayerState& state() const { return l.states[id]; }
  [[nodiscard]] const ValueType& output_type() const { return l.graph.values[layer().output].type; }
  [[nodiscard]] std::string name(const char* suffix) const { return layer().name + suffix; }

  /// An input as it is stored.
  [[nodiscard]] const Operand& stored(std::size_t index = 0) const {
    return l.values[layer().inputs[index]];
  }
  /// An input in the layout of activations; data from outside is reordered first.
  [[nodiscard]] Operand activation(std::size_t index = 0) const;

  /// A new tensor for the output.
  [[nodiscard]] Operand new_output() const { return l.new_output(id); }
  /// The output is stored here.
  void set_output(const Operand& y) const { l.values[layer().output] = y; }
  /// The output is the input's bytes: the layer writes no op.
  void pass_on(const Operand& x) const;
  /// Adds a parameter for each channel, the layer's next one, to what `y` has.
  void add_channel_bias(const Operand& y, std::int64_t channels) const;
  /// A tensor beside the output, for the backward pass.
  [[nodiscard]] Operand new_activation(const char* suffix, TensorDesc desc) const {
    return l.writer.tensor(name(suffix), std::move(desc), TensorKind::activation);
  }
};

struct BackwardPass {
  Lowering& l;
  GradientFlow& gradients;
  LayerId id;
  Operand d;  ///< the whole gradient of the output; nothing for the loss

  [[nodiscard]] const Layer& layer() const { return l.layer(id); }
  [[nodiscard]] const LayerState& state() const { return l.states[id]; }
  [[nodiscard]] const Operand& output() const { return l.values[layer().output]; }
  [[nodiscard]] std::string name(const char* suffix) const { return layer().name + suffix; }
  [[nodiscard]] bool input_needs_gradient(std::size_t input = 0) const {
    return l.needs_gradient[layer().inputs[input]];
  }
  [[nodiscard]] bool in_place() const { return l.options.storage == Storage::in_place; }
  /// See Note [Shared gradients].
  [[nodiscard]] bool may_overwrite_d() const { return gradients.held_is_free(); }

  /// `gradient` is this layer's contribution to the gradient of an input.
  void contribute(Operand gradient, std::size_t input = 0) const {
    gradients.contribute(layer().inputs[input], std::move(gradient));
  }
  [[nodiscard]] Operand new_input_gradient(std::size_t input = 0) const {
    return l.new_gradient(layer().inputs[input]);
  }

  [[nodiscard]] const Operand& weight(std::size_t index) const {
    return l.parameters[id].learnable[index].weight;
  }
  /// The gradient of a parameter: the first round writes it, the others add to it. See Note [Shared
  /// weights].
  [[nodiscard]] Operand parameter_gradient(std::size_t index) const;
  /// Where this layer writes its part of the gradient of a weight that belongs to another layer,
  /// `owner`, which comes earlier in the graph: its own backward pass comes later.
  [[nodiscard]] Operand shared_gradient(LayerId owner, std::size_t index) const;
  /// `parameter_gradient` has been written: in the last round the weight changes.
  void update(std::size_t index) const;
  /// Of the parameter that `add_channel_bias` made.
  void update_channel_bias(std::size_t index) const;

  /// `operands`, and what the forward op read and wrote where storage is separate.
  void write_pool_backward(OpDesc desc, std::vector<Operand> operands) const;
};

}  // namespace tidepool::nn
