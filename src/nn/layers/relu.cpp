#include "nn/layers/relu.h"

#include "nn/layers/shape_rules.h"
#include "nn/passes.h"

namespace tidepool::nn {

Result<ValueType> Relu::infer(InputTypes inputs) const { return same_as_input(inputs); }

void Relu::forward(const ForwardPass& f) const {
  const Operand x = f.activation();
  f.state().inputs = {x};
  if (f.l.options.storage != Storage::separate && f.l.is_read_once(x)) {
    f.set_output(x);
    f.l.writer.op(f.name(".forward"), {.op = ReluForward{}, .in_place = true}, {x});
  } else {
    f.l.writer.op(f.name(".forward"), {ReluForward{}}, {x, f.new_output()});
  }
}

void Relu::backward(const BackwardPass& b) const {
  if (!b.input_needs_gradient()) return;
  const Operand& y = b.output();
  OpDesc desc{ReluBackward{}};
  desc.in_place = b.in_place() && b.may_overwrite_d();
  const Operand dx = desc.in_place ? b.d : b.new_input_gradient();
  if (desc.in_place) {
    b.l.writer.op(b.name(".backward"), desc, {y, b.d});
  } else if (b.l.options.storage != Storage::separate) {
    b.l.writer.op(b.name(".backward"), desc, {y, b.d, dx});
  } else {
    desc.reads_forward = true;
    b.l.writer.op(b.name(".backward"), desc, {y, b.d, dx, b.state().inputs[0]});
  }
  b.contribute(dx);
}

}  // namespace tidepool::nn
