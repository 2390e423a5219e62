#include "nn/autodiff.h"

#include <utility>

#include "nn/gradient_flow.h"

namespace tidepool::nn {
namespace {

OpDesc update_desc(const TrainingOptions& options) {
  OpDesc desc;
  desc.weight_decay = options.weight_decay;
  if (options.optimizer == Optimizer::sgd) {
    desc.kind = OpKind::sgd_update;
    desc.momentum = options.momentum;
  } else {
    desc.kind = OpKind::adamw_update;
    desc.beta1 = options.beta1;
    desc.beta2 = options.beta2;
    desc.epsilon = options.epsilon;
  }
  return desc;
}

/// One layer's backward pass: `d` is the whole gradient of its output.
struct Backward {
  Lowering& l;
  GradientFlow& gradients;
  LayerId id;
  Operand d;

  [[nodiscard]] const Layer& layer() const { return l.layer(id); }
  [[nodiscard]] const LayerState& state() const { return l.states[id]; }
  [[nodiscard]] const Operand& output() const { return l.values[layer().output]; }
  [[nodiscard]] bool input_needs_gradient() const { return l.needs_gradient[layer().inputs[0]]; }
  [[nodiscard]] bool in_place() const { return l.options.storage == Storage::in_place; }
  /// See Note [Shared gradients].
  [[nodiscard]] bool may_overwrite_d() const { return gradients.held_is_free(); }
  [[nodiscard]] std::string name(const char* suffix) const { return layer().name + suffix; }

  /// `gradient` is this layer's contribution to the gradient of an input.
  void contribute(Operand gradient, std::size_t input = 0) const {
    gradients.contribute(layer().inputs[input], std::move(gradient));
  }

  [[nodiscard]] Operand new_input_gradient() const { return l.new_gradient(layer().inputs[0]); }

  [[nodiscard]] const Operand& weight(std::size_t index) const {
    return l.parameters[id].learnable[index].weight;
  }

  /// Where this round's gradient of a parameter is written.
  [[nodiscard]] Operand new_parameter_gradient(std::size_t index) const {
    const Operand& parameter = weight(index);
    return l.writer.tensor("grad:" + l.writer.name_of(parameter.tensor), parameter.desc,
                           TensorKind::gradient);
  }

  /// Adds this round's gradient to those of the rounds before; the last round's changes the weight.
  void update(std::size_t index, const Operand& gradient) const {
    LayerParameter& parameter = l.parameters[id].learnable[index];
    const std::string& weight_name = l.writer.name_of(parameter.weight.tensor);
    if (l.round == 0) {
      parameter.gradient = gradient;
    } else {
      OpDesc sum;
      sum.kind = OpKind::add_forward;
      sum.in_place = true;
      l.writer.op(weight_name + ".accumulate", sum, {parameter.gradient, gradient});
    }
    if (!l.last_round()) return;
    std::vector<Operand> operands{parameter.gradient, l.control, parameter.weight};
    operands.insert(operands.end(), parameter.optimizer_state.begin(),
                    parameter.optimizer_state.end());
    l.writer.op(weight_name + ".update", update_desc(l.options), operands);
  }
};

OpDesc window_desc(OpKind kind, std::int64_t window, std::int64_t stride, std::int64_t padding) {
  OpDesc desc;
  desc.kind = kind;
  desc.window = window;
  desc.stride = stride;
  desc.padding = padding;
  return desc;
}

OpDesc plain_desc(OpKind kind) { return window_desc(kind, 0, 1, 0); }

void backward(const Backward&, const Input&) {}

/// The weight in the layout backward-data reads it in.
Operand weight_for_backward_data(const Backward& b) {
  const Operand& weight = b.weight(0);
  if (weight.desc.layout == Layout::plain) return weight;
  TensorDesc desc = weight.desc;
  desc.layout = Layout::OIhw16o16i;
  const Operand copy =
      b.l.writer.tensor(b.name(".weight.reordered"), std::move(desc), TensorKind::workspace);
  b.l.writer.op(b.name(".reorder_weight"), plain_desc(OpKind::reorder), {weight, copy});
  return copy;
}

void backward(const Backward& b, const Conv2d& spec) {
  const Operand& x = b.state().inputs[0];
  const Operand dweight = b.new_parameter_gradient(0);
  b.l.writer.op(b.name(".backward_weights"),
                window_desc(OpKind::conv_backward_weights, spec.window, spec.stride, spec.padding),
                {x, b.d, dweight});
  if (b.input_needs_gradient()) {
    const Operand weight = weight_for_backward_data(b);
    const Operand dx = b.new_input_gradient();
    b.l.writer.op(b.name(".backward_data"),
                  window_desc(OpKind::conv_backward_data, spec.window, spec.stride, spec.padding),
                  {b.d, weight, dx});
    b.contribute(dx);
  }
  b.update(0, dweight);
}

void backward(const Backward& b, const BatchNorm& spec) {
  const LayerState& state = b.state();
  const Operand& x = state.inputs[0];
  const Operand& mean = state.saved[0];
  const Operand& variance = state.saved[1];
  const Operand& scale = b.weight(0);
  const Operand dscale = b.new_parameter_gradient(0);
  const Operand dshift = b.new_parameter_gradient(1);
  OpDesc desc = plain_desc(OpKind::batch_norm_backward);
  desc.epsilon = spec.epsilon;
  // Where nobody wants dx, the gradient is overwritten rather than a tensor made for it.
  desc.in_place = (b.in_place() || !b.input_needs_gradient()) && b.may_overwrite_d();
  if (desc.in_place) {
    b.l.writer.op(b.name(".backward"), desc, {x, b.d, mean, variance, scale, dscale, dshift});
    b.contribute(b.d);
  } else {
    const Operand dx = b.new_input_gradient();
    b.l.writer.op(b.name(".backward"), desc, {x, b.d, mean, variance, scale, dx, dscale, dshift});
    b.contribute(dx);
  }
  b.update(0, dscale);
  b.update(1, dshift);
}

void backward(const Backward& b, const Relu&) {
  if (!b.input_needs_gradient()) return;
  const Operand& y = b.output();
  OpDesc desc = plain_desc(OpKind::relu_backward);
  desc.in_place = b.in_place() && b.may_overwrite_d();
  const Operand dx = desc.in_place ? b.d : b.new_input_gradient();
  if (desc.in_place) {
    b.l.writer.op(b.name(".backward"), desc, {y, b.d});
  } else if (b.in_place()) {
    b.l.writer.op(b.name(".backward"), desc, {y, b.d, dx});
  } else {
    desc.reads_forward = true;
    b.l.writer.op(b.name(".backward"), desc, {y, b.d, dx, b.state().inputs[0]});
  }
  b.contribute(dx);
}

/// `operands`, and what the forward op read and wrote where storage is separate.
void write_pool_backward(const Backward& b, OpDesc desc, std::vector<Operand> operands) {
  if (!b.in_place()) {
    desc.reads_forward = true;
    operands.push_back(b.state().inputs[0]);
    operands.push_back(b.output());
  }
  b.l.writer.op(b.name(".backward"), std::move(desc), operands);
}

void backward(const Backward& b, const MaxPool& spec) {
  if (!b.input_needs_gradient()) return;
  const Operand dx = b.new_input_gradient();
  write_pool_backward(
      b, window_desc(OpKind::max_pool_backward, spec.window, spec.stride, spec.padding),
      {b.d, b.state().saved[0], dx});
  b.contribute(dx);
}

void backward(const Backward& b, const AvgPool& spec) {
  if (!b.input_needs_gradient()) return;
  const Operand dx = b.new_input_gradient();
  write_pool_backward(b, window_desc(OpKind::avg_pool_backward, spec.window, spec.stride, 0),
                      {b.d, dx});
  b.contribute(dx);
}

/// Both inputs have the gradient of the sum.
void backward(const Backward& b, const Add&) {
  b.contribute(b.d, 0);
  b.contribute(b.d, 1);
}

/// The copy that an op which only overwrites gradients overwrites.
Operand private_copy_of_d(const Backward& b) {
  const Operand copy = b.new_input_gradient();
  b.l.writer.op(b.name(".copy_gradient"), plain_desc(OpKind::reorder), {b.d, copy});
  return copy;
}

void backward(const Backward& b, const Dropout& spec) {
  if (!b.input_needs_gradient()) return;
  if (b.state().view) return b.contribute(b.d);
  OpDesc desc = plain_desc(OpKind::dropout_backward);
  desc.drop_rate = spec.rate;
  desc.random_key = b.state().random_key;
  desc.in_place = b.state().saved.empty();
  if (desc.in_place) {
    const Operand dx = b.may_overwrite_d() ? b.d : private_copy_of_d(b);
    b.l.writer.op(b.name(".backward"), desc, {dx, b.l.control});
    b.contribute(dx);
  } else {
    const Operand dx = b.new_input_gradient();
    b.l.writer.op(b.name(".backward"), desc, {b.d, b.state().saved[0], dx});
    b.contribute(dx);
  }
}

void backward(const Backward& b, const Linear&) {
  const Operand dweight = b.new_parameter_gradient(0);
  const Operand dbias = b.new_parameter_gradient(1);
  b.l.writer.op(b.name(".backward_weights"), plain_desc(OpKind::linear_backward_weights),
                {b.state().inputs[0], b.d, dweight, dbias});
  if (b.input_needs_gradient()) {
    const Operand dx = b.new_input_gradient();
    b.l.writer.op(b.name(".backward_data"), plain_desc(OpKind::linear_backward_data),
                  {b.d, b.weight(0), dx});
    b.contribute(dx);
  }
  b.update(0, dweight);
  b.update(1, dbias);
}

void backward(const Backward& b, const Flatten&) {
  if (!b.input_needs_gradient()) return;
  if (b.state().view) return b.contribute(b.d);
  Operand plain = b.d;
  plain.desc.dims = b.l.values[b.layer().inputs[0]].desc.dims;
  const Operand dx = b.new_input_gradient();
  b.l.writer.op(b.name(".backward"), plain_desc(OpKind::reorder), {plain, dx});
  b.contribute(dx);
}

void backward(const Backward& b, const SoftmaxCrossEntropy&) {
  const Operand& labels = b.state().inputs[1];
  const Operand dlogits = b.new_input_gradient();
  OpDesc desc = plain_desc(OpKind::softmax_loss_backward);
  desc.full_batch = b.l.options.batch;
  b.l.writer.op(b.name(".backward"), desc, {b.state().saved[0], labels, dlogits});
  b.contribute(dlogits);
}

}  // namespace

void emit_backward(Lowering& lowering) {
  GradientFlow gradients(lowering);
  for (auto id = static_cast<LayerId>(lowering.graph.layers.size()) - 1; id >= 0; --id) {
    const Layer& layer = lowering.layer(id);
    const std::optional<Operand> gradient = gradients.take(layer.output);
    const bool is_loss =
        layer.output == lowering.graph.loss && lowering.needs_gradient[layer.output];
    if (!gradient && !is_loss) continue;
    const Backward step{lowering, gradients, id, gradient.value_or(Operand{})};
    std::visit([&](const auto& spec) { backward(step, spec); }, layer.spec);
  }
}

}  // namespace tidepool::nn
