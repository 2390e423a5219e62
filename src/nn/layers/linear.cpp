#include "nn/layers/linear.h"

#include "nn/layers/shape_rules.h"
#include "nn/passes.h"

namespace tidepool::nn {

Result<ValueType> Linear::infer(InputTypes inputs) const {
  if (auto count = expect_inputs(inputs, 1); !count) return fail(count.error());
  if (auto rows = expect_vectors(inputs[0]); !rows) {
    return fail(ErrorCode::usage, rows.error().message + " (flatten the value first)");
  }
  ValueType output = inputs[0];
  output.dims.back() = features;
  return output;
}

void Linear::forward(const ForwardPass& f) const {
  const Operand x = rows_of(f.stored());
  const std::int64_t in_features = x.desc.dims[1];
  const Operand weight = f.l.add_parameter(f.id, "weight", TensorDesc{{features, in_features}},
                                           initialiser, in_features);
  const Operand bias =
      f.l.add_parameter(f.id, "bias", TensorDesc{{features}}, Initialiser::zero, 1);
  f.state().inputs = {x};
  f.l.writer.op(f.name(".forward"), {LinearForward{}}, {x, weight, bias, rows_of(f.new_output())});
}

void Linear::backward(const BackwardPass& b) const {
  const Operand dweight = b.parameter_gradient(0);
  const Operand dbias = b.parameter_gradient(1);
  b.l.writer.op(b.name(".backward_weights"), {LinearBackwardWeights{}},
                {b.state().inputs[0], rows_of(b.d), dweight, dbias});
  if (b.input_needs_gradient()) {
    const Operand dx = b.new_input_gradient();
    b.l.writer.op(b.name(".backward_data"), {LinearBackwardData{}},
                  {rows_of(b.d), b.weight(0), rows_of(dx)});
    b.contribute(dx);
  }
  b.update(0);
  b.update(1);
}

}  // namespace tidepool::nn
