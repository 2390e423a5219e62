#include "nn/layers/lstm.h"

#include <fmt/format.h>

#include "nn/layers/shape_rules.h"
#include "nn/passes.h"

namespace tidepool::nn {

Result<ValueType> Lstm::infer(InputTypes inputs) const {
  if (auto count = expect_inputs(inputs, 1); !count) return fail(count.error());
  if (auto rank = expect_rank(inputs[0], 2, "a sequence of vectors"); !rank) {
    return fail(rank.error());
  }
  if (hidden < 1) return fail(ErrorCode::usage, fmt::format("cannot have {} cells", hidden));
  return ValueType{{inputs[0].dims[0], hidden}, ElementType::f32};
}

void Lstm::forward(const ForwardPass& f) const {
  const Operand x = f.stored();
  const std::int64_t gates = 4 * hidden;
  const std::int64_t fan_in = 6 * hidden;  // of which he_normal makes the variance 1 / (3 hidden)
  const Operand weight_input = f.l.add_parameter(
      f.id, "weight_input", TensorDesc{{gates, x.desc.dims[2]}}, Initialiser::he_normal, fan_in);
  const Operand weight_hidden = f.l.add_parameter(
      f.id, "weight_hidden", TensorDesc{{gates, hidden}}, Initialiser::he_normal, fan_in);
  const Operand bias = f.l.add_parameter(f.id, "bias", TensorDesc{{gates}}, Initialiser::zero, 1);
  const Operand y = f.new_output();
  const Operand reserve =
      f.new_activation(".reserve", TensorDesc{{x.desc.dims[0], x.desc.dims[1], 5 * hidden}});
  f.state().inputs = {x};
  f.state().saved = {reserve};
  f.l.writer.op(f.name(".forward"), {LstmForward{}},
                {x, weight_input, weight_hidden, bias, y, reserve});
}

void Lstm::backward(const BackwardPass& b) const {
  const Operand& x = b.state().inputs[0];
  const Operand& reserve = b.state().saved[0];
  // The op makes it even where nobody wants it: of data from outside.
  const Operand dx = b.new_input_gradient();
  OpDesc data{LstmBackwardData{}};
  data.in_place = b.in_place();
  Operand dgates = reserve;
  if (data.in_place) {
    b.l.writer.op(b.name(".backward_data"), data, {b.d, b.weight(0), b.weight(1), reserve, dx});
  } else {
    dgates = b.l.writer.tensor("grad:" + b.name(".gates"),
                               TensorDesc{{x.desc.dims[0], x.desc.dims[1], 4 * hidden}},
                               TensorKind::gradient);
    b.l.writer.op(b.name(".backward_data"), data,
                  {b.d, b.weight(0), b.weight(1), reserve, dgates, dx});
  }
  const Operand dweight_input = b.parameter_gradient(0);
  const Operand dweight_hidden = b.parameter_gradient(1);
  const Operand dbias = b.parameter_gradient(2);
  b.l.writer.op(b.name(".backward_weights"), {LstmBackwardWeights{}},
                {x, b.output(), dgates, dweight_input, dweight_hidden, dbias});
  if (b.input_needs_gradient()) b.contribute(dx);
  b.update(0);
  b.update(1);
  b.update(2);
}

}  // namespace tidepool::nn
