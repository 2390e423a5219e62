#include "nn/layers/conv_transpose2d.h"

#include <algorithm>

#include "nn/layers/shape_rules.h"
#include "nn/passes.h"

namespace tidepool::nn {
namespace {

Window window_of(const ConvTranspose2d& spec) { return {spec.window, spec.stride, spec.padding}; }

/// Elements of the input that one of the output is made of, away from the border.
std::int64_t fan_in_of(const ConvTranspose2d& spec, std::int64_t in_channels) {
  return in_channels * std::max<std::int64_t>(1, spec.window.area() / (spec.stride * spec.stride));
}

}  // namespace

Result<ValueType> ConvTranspose2d::infer(InputTypes inputs) const {
  return unslide(inputs, channels, window_of(*this));
}

void ConvTranspose2d::forward(const ForwardPass& f) const {
  const Operand x = f.activation();
  const std::int64_t in_channels = x.desc.dims[1];
  const TensorDesc weight_desc{{in_channels, channels, window.height, window.width},
                               ElementType::f32,
                               in_blocks(Layout::OIhw16i16o, f.l.kernels.channel_block)};
  const Operand weight = f.l.add_parameter(
      f.id, "weight", weight_desc, bilinear ? Initialiser::bilinear : Initialiser::he_normal,
      fan_in_of(*this, in_channels));
  f.state().inputs = {x};
  const Operand turned = weight_for_backward_data(f.l, f.layer(), weight);
  const Operand y = f.new_output();
  f.l.writer.op(f.name(".forward"), {ConvBackwardData{window_of(*this)}}, {x, turned, y});
  if (bias) f.add_channel_bias(y, channels);
}

void ConvTranspose2d::backward(const BackwardPass& b) const {
  const Operand dweight = b.parameter_gradient(0);
  b.l.writer.op(b.name(".backward_weights"), {ConvBackwardWeights{window_of(*this)}},
                {b.d, b.state().inputs[0], dweight});
  if (b.input_needs_gradient()) {
    const Operand dx = b.new_input_gradient();
    b.l.writer.op(b.name(".backward_data"), {ConvForward{window_of(*this)}},
                  {b.d, b.weight(0), dx});
    b.contribute(dx);
  }
  b.update(0);
  if (bias) b.update_channel_bias(1);
}

}  // namespace tidepool::nn
