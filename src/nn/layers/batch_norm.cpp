#include "nn/layers/batch_norm.h"

#include <utility>

#include "nn/layers/shape_rules.h"
#include "nn/passes.h"

namespace tidepool::nn {

Result<ValueType> BatchNorm::infer(InputTypes inputs) const {
  if (!(epsilon > 0)) return fail(ErrorCode::usage, "needs a positive epsilon");
  return same_as_input(inputs);
}

namespace {

std::pair<Operand, Operand> add_running_statistics(const ForwardPass& f, const TensorDesc& desc) {
  return {f.l.add_statistic(f.id, "running_mean", desc, Initialiser::zero),
          f.l.add_statistic(f.id, "running_variance", desc, Initialiser::one)};
}

}  // namespace

void BatchNorm::forward(const ForwardPass& f) const {
  const Operand x = f.activation();
  const TensorDesc channel{{x.desc.dims[1]}};
  const Operand scale = f.l.add_parameter(f.id, "scale", channel, Initialiser::one, 1);
  const Operand shift = f.l.add_parameter(f.id, "shift", channel, Initialiser::zero, 1);
  const Operand y = f.new_output();
  if (!f.l.training()) {
    const auto [running_mean, running_variance] = add_running_statistics(f, channel);
    f.l.writer.op(f.name(".forward"), {BatchNormInference{{epsilon}}},
                  {x, scale, shift, running_mean, running_variance, y});
    return;
  }
  const Operand mean = f.new_activation(".mean", channel);
  const Operand variance = f.new_activation(".variance", channel);
  f.state().inputs = {x};
  f.state().saved = {mean, variance};
  f.l.writer.op(f.name(".forward"), {BatchNormForward{{epsilon}}},
                {x, scale, shift, y, mean, variance});
  const BatchNormStatistics update{statistics_momentum, x.desc.elements() / x.desc.dims[1]};
  if (f.l.options.devices > 1) {
    const std::size_t index = f.l.name_statistic(f.id, "running_mean", Initialiser::zero);
    f.l.name_statistic(f.id, "running_variance", Initialiser::one);
    f.l.writer.op(f.name(".statistics"), {CollectStatistics{update, index}}, {mean, variance});
    return;
  }
  const auto [running_mean, running_variance] = add_running_statistics(f, channel);
  f.l.writer.op(f.name(".statistics"), {update}, {mean, variance, running_mean, running_variance});
}

void BatchNorm::backward(const BackwardPass& b) const {
  const Operand& x = b.state().inputs[0];
  const Operand& mean = b.state().saved[0];
  const Operand& variance = b.state().saved[1];
  const Operand& scale = b.weight(0);
  const Operand dscale = b.parameter_gradient(0);
  const Operand dshift = b.parameter_gradient(1);
  OpDesc desc{BatchNormBackward{{epsilon}}};
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
  b.update(0);
  b.update(1);
}

}  // namespace tidepool::nn
