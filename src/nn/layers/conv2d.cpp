#include "nn/layers/conv2d.h"

#include <utility>

#include "nn/layers/shape_rules.h"
#include "nn/passes.h"

namespace tidepool::nn {
namespace {

Window window_of(const Conv2d& spec) { return {spec.window, spec.stride, spec.padding}; }

/// The weight in the layout backward-data reads it in.
Operand weight_for_backward_data(const BackwardPass& b) {
  const Operand& weight = b.weight(0);
  if (weight.desc.layout == Layout::plain) return weight;
  TensorDesc desc = weight.desc;
  desc.layout = Layout::OIhw16o16i;
  Operand copy =
      b.l.writer.tensor(b.name(".weight.reordered"), std::move(desc), TensorKind::workspace);
  b.l.writer.op(b.name(".reorder_weight"), {Reorder{}}, {weight, copy});
  return copy;
}

}  // namespace

Result<ValueType> Conv2d::infer(InputTypes inputs) const {
  return slide(inputs, channels, window_of(*this));
}

void Conv2d::forward(const ForwardPass& f) const {
  const Operand x = f.stored();
  const std::int64_t in_channels = x.desc.dims[1];
  TensorDesc weight_desc{{channels, in_channels, window, window}};
  if (f.l.kernels.blocked_layouts) {
    weight_desc.layout = x.desc.layout == Layout::plain ? Layout::Ohwi16o : Layout::OIhw16i16o;
  }
  const Operand weight = f.l.add_parameter(f.id, "weight", weight_desc, Initialiser::he_normal,
                                           in_channels * window * window);
  f.state().inputs = {x};
  f.l.writer.op(f.name(".forward"), {ConvForward{window_of(*this)}}, {x, weight, f.new_output()});
}

void Conv2d::backward(const BackwardPass& b) const {
  const Operand dweight = b.new_parameter_gradient(0);
  b.l.writer.op(b.name(".backward_weights"), {ConvBackwardWeights{window_of(*this)}},
                {b.state().inputs[0], b.d, dweight});
  if (b.input_needs_gradient()) {
    const Operand weight = weight_for_backward_data(b);
    const Operand dx = b.new_input_gradient();
    b.l.writer.op(b.name(".backward_data"), {ConvBackwardData{window_of(*this)}},
                  {b.d, weight, dx});
    b.contribute(dx);
  }
  b.update(0, dweight);
}

}  // namespace tidepool::nn
