#include "nn/layers/layer_norm.h"

#include "nn/layers/shape_rules.h"
#include "nn/passes.h"

namespace tidepool::nn {

Result<ValueType> LayerNorm::infer(InputTypes inputs) const {
  if (!(epsilon > 0)) return fail(ErrorCode::usage, "needs a positive epsilon");
  if (auto count = expect_inputs(inputs, 1); !count) return fail(count.error());
  if (auto rows = expect_vectors(inputs[0]); !rows) return fail(rows.error());
  return inputs[0];
}

void LayerNorm::forward(const ForwardPass& f) const {
  const Operand x = rows_of(f.stored());
  const TensorDesc column{{x.desc.dims[1]}}, row{{x.desc.dims[0]}};
  const Operand scale = f.l.add_parameter(f.id, "scale", column, Initialiser::one, 1);
  const Operand shift = f.l.add_parameter(f.id, "shift", column, Initialiser::zero, 1);
  const Operand y = rows_of(f.new_output());
  const Operand mean = f.new_activation(".mean", row);
  const Operand variance = f.new_activation(".variance", row);
  f.state().inputs = {x};
  f.state().saved = {mean, variance};
  f.l.writer.op(f.name(".forward"), {LayerNormForward{{epsilon}}},
                {x, scale, shift, y, mean, variance});
}

void LayerNorm::backward(const BackwardPass& b) const {
  const Operand& x = b.state().inputs[0];
  const Operand& mean = b.state().saved[0];
  const Operand& variance = b.state().saved[1];
  const Operand dscale = b.parameter_gradient(0), dshift = b.parameter_gradient(1);
  OpDesc desc{LayerNormBackward{{epsilon}}};
  // Where nobody wants dx, the gradient is overwritten rather than a tensor made for it.
  desc.in_place = (b.in_place() || !b.input_needs_gradient()) && b.may_overwrite_d();
  const Operand d = rows_of(b.d);
  if (desc.in_place) {
    b.l.writer.op(b.name(".backward"), desc, {x, d, mean, variance, b.weight(0), dscale, dshift});
    b.contribute(b.d);
  } else {
    const Operand dx = b.new_input_gradient();
    b.l.writer.op(b.name(".backward"), desc,
                  {x, d, mean, variance, b.weight(0), rows_of(dx), dscale, dshift});
    b.contribute(dx);
  }
  b.update(0);
  b.update(1);
}

}  // namespace tidepool::nn
