#include "nn/layers/mean_squared_error.h"

#include "nn/layers/shape_rules.h"
#include "nn/passes.h"

namespace tidepool::nn {

Result<ValueType> MeanSquaredError::infer(InputTypes inputs) const {
  if (auto type = same_shapes(inputs); !type) return fail(type.error());
  return ValueType{{}, ElementType::f32};
}

void MeanSquaredError::forward(const ForwardPass& f) const {
  const Operand prediction = f.activation(0);
  const Operand target = f.l.apart(f.activation(1), prediction, f.name(".copy"));
  const Operand loss = f.new_activation("", TensorDesc{{1}});
  f.set_output(loss);
  f.state().inputs = {prediction, target};
  f.l.writer.op(f.name(".forward"), {SquaredErrorForward{{f.l.samples_of_mean()}}},
                {prediction, target, loss});
}

/// The target is taken as given: it gets no gradient.
void MeanSquaredError::backward(const BackwardPass& b) const {
  if (!b.input_needs_gradient()) return;
  const Operand dprediction = b.new_input_gradient();
  b.l.writer.op(b.name(".backward"), {SquaredErrorBackward{{b.l.samples_of_mean()}}},
                {b.state().inputs[0], b.state().inputs[1], dprediction});
  b.contribute(dprediction);
}

}  // namespace tidepool::nn
