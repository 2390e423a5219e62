#include "nn/layers/gelu.h"

#include "nn/layers/shape_rules.h"
#include "nn/passes.h"

namespace tidepool::nn {

Result<ValueType> Gelu::infer(InputTypes inputs) const { return same_as_input(inputs); }

void Gelu::forward(const ForwardPass& f) const {
  const Operand x = f.activation();
  f.state().inputs = {x};
  f.l.writer.op(f.name(".forward"), {GeluForward{}}, {x, f.new_output()});
}

void Gelu::backward(const BackwardPass& b) const {
  if (!b.input_needs_gradient()) return;
  const Operand& x = b.state().inputs[0];
  if (b.in_place() && b.may_overwrite_d()) {
    b.l.writer.op(b.name(".backward"), {.op = GeluBackward{}, .in_place = true}, {x, b.d});
    b.contribute(b.d);
  } else {
    const Operand dx = b.new_input_gradient();
    b.l.writer.op(b.name(".backward"), {GeluBackward{}}, {x, b.d, dx});
    b.contribute(dx);
  }
}

}  // namespace tidepool::nn
