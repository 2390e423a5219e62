#include "nn/layers/conv2d.h"

#include <fmt/format.h>

#include "nn/layers/shape_rules.h"
#include "nn/passes.h"

namespace tidepool::nn {
namespace {

Window window_of(const Conv2d& spec) { return {spec.window, spec.stride, spec.padding}; }

/// Of a weight where activations are blocked, as if in blocks of 16. Depthwise filters go in blocks
/// of channels; so do groups of whole blocks, and others are plain.
Layout weight_layout(const TensorDesc& weight, std::int64_t groups, const TensorDesc& x,
                     std::int64_t block) {
  if (groups == 1) return x.layout == Layout::plain ? Layout::Ohwi16o : Layout::OIhw16i16o;
  const std::int64_t filters = weight.dims[0] / groups, channels = weight.dims[1];
  if (filters == 1 && channels == 1) return Layout::Ohwi16o;
  const bool whole_blocks = filters % block == 0 && channels % block == 0;
  return whole_blocks ? Layout::OIhw16i16o : Layout::plain;
}

}  // namespace

Result<ValueType> Conv2d::infer(InputTypes inputs) const {
  auto type = slide(inputs, channels, window_of(*this));
  if (!type) return type;
  if (groups < 1 || channels % groups != 0 || inputs[0].dims[0] % groups != 0) {
    return fail(ErrorCode::usage, fmt::format("cannot make {} groups of {} channels for {} filters",
                                              groups, inputs[0].dims[0], channels));
  }
  return type;
}

void Conv2d::forward(const ForwardPass& f) const {
  const Operand x = groups == 1 ? f.stored() : f.activation();
  const std::int64_t in_channels = x.desc.dims[1] / groups;
  TensorDesc weight_desc{{channels, in_channels, window.height, window.width}};
  const std::int64_t block = f.l.kernels.channel_block;
  weight_desc.layout = in_blocks(weight_layout(weight_desc, groups, x.desc, block), block);
  const Operand weight = f.l.add_parameter(f.id, "weight", weight_desc,
                                           zero ? Initialiser::zero : Initialiser::he_normal,
                                           in_channels * window.area());
  f.state().inputs = {x};
  const Operand y = f.new_output();
  f.l.writer.op(f.name(".forward"), {ConvForward{window_of(*this)}}, {x, weight, y});
  if (bias) f.add_channel_bias(y, channels);
}

void Conv2d::backward(const BackwardPass& b) const {
  const Operand dweight = b.parameter_gradient(0);
  b.l.writer.op(b.name(".backward_weights"), {ConvBackwardWeights{window_of(*this)}},
                {b.state().inputs[0], b.d, dweight});
  if (b.input_needs_gradient()) {
    const Operand weight = weight_for_backward_data(b.l, b.layer(), b.weight(0));
    const Operand dx = b.new_input_gradient();
    b.l.writer.op(b.name(".backward_data"), {ConvBackwardData{window_of(*this)}},
                  {b.d, weight, dx});
    b.contribute(dx);
  }
  b.update(0);
  if (bias) b.update_channel_bias(1);
}

}  // namespace tidepool::nn
