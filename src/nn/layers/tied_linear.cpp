#include "nn/layers/tied_linear.h"

#include "nn/layers/shape_rules.h"
#include "nn/passes.h"

namespace tidepool::nn {
namespace {

Operand weight_of(const Lowering& l, const TiedLinear& spec) {
  return l.parameters[l.find_layer(spec.owner)].learnable[0].weight;
}

}  // namespace

/// That the owner has such a table is checked by GraphBuilder.
Result<ValueType> TiedLinear::infer(InputTypes inputs) const {
  if (auto count = expect_inputs(inputs, 1); !count) return fail(count.error());
  if (auto rows = expect_vectors(inputs[0]); !rows) return fail(rows.error());
  ValueType output = inputs[0];
  output.dims.back() = features;
  return output;
}

void TiedLinear::forward(const ForwardPass& f) const {
  const Operand x = rows_of(f.stored());
  const Operand weight = weight_of(f.l, *this);
  f.state().inputs = {x};
  if (bias) {
    const Operand shift =
        f.l.add_parameter(f.id, "bias", TensorDesc{{features}}, Initialiser::zero, 1);
    f.l.writer.op(f.name(".forward"), {LinearForward{}},
                  {x, weight, shift, rows_of(f.new_output())});
  } else {
    f.l.writer.op(f.name(".forward"), {ProjectionForward{}}, {x, weight, rows_of(f.new_output())});
  }
}

void TiedLinear::backward(const BackwardPass& b) const {
  const Operand& x = b.state().inputs[0];
  const Operand d = rows_of(b.d), weight = weight_of(b.l, *this);
  const Operand dweight = b.shared_gradient(b.l.find_layer(owner), 0);
  if (bias) {
    const Operand dbias = b.parameter_gradient(0);
    b.l.writer.op(b.name(".backward_weights"), {LinearBackwardWeights{}}, {x, d, dweight, dbias});
    b.update(0);
  } else {
    b.l.writer.op(b.name(".backward_weights"), {ProjectionBackwardWeights{}}, {x, d, dweight});
  }
  if (!b.input_needs_gradient()) return;
  const Operand dx = b.new_input_gradient();
  b.l.writer.op(b.name(".backward_data"), {LinearBackwardData{}}, {d, weight, rows_of(dx)});
  b.contribute(dx);
}

}  // namespace tidepool::nn
