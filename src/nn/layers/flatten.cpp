#include "nn/layers/flatten.h"

#include "nn/layers/shape_rules.h"
#include "nn/passes.h"

namespace tidepool::nn {

Result<ValueType> Flatten::infer(InputTypes inputs) const {
  if (auto image = expect_image(inputs); !image) return fail(image.error());
  return ValueType{{inputs[0].elements()}, ElementType::f32};
}

/// Whole blocks of channels of 1x1 are in plain order.
void Flatten::forward(const ForwardPass& f) const {
  const Operand x = f.stored();
  const TensorDesc flat = f.l.batched(f.output_type());
  const auto& dims = x.desc.dims;
  const bool plain = x.desc.layout == Layout::plain;
  if (plain || (dims[1] % block_of(x.desc.layout) == 0 && dims[2] == 1 && dims[3] == 1)) {
    return f.pass_on({x.tensor, flat});
  }
  const Operand y = f.new_activation(".out", {dims, x.desc.type, Layout::plain});
  f.set_output({y.tensor, flat});
  f.l.writer.op(f.name(".forward"), {Reorder{}}, {x, y});
}

void Flatten::backward(const BackwardPass& b) const {
  if (!b.input_needs_gradient()) return;
  if (b.state().view) return b.contribute(b.d);
  Operand plain = b.d;
  plain.desc.dims = b.l.values[b.layer().inputs[0]].desc.dims;
  const Operand dx = b.new_input_gradient();
  b.l.writer.op(b.name(".backward"), {Reorder{}}, {plain, dx});
  b.contribute(dx);
}

}  // namespace tidepool::nn
