#include "nn/layers/add.h"

#include "nn/layers/shape_rules.h"
#include "nn/passes.h"

namespace tidepool::nn {

Result<ValueType> Add::infer(InputTypes inputs) const { return same_shapes(inputs); }

void Add::forward(const ForwardPass& f) const {
  const Operand a = f.activation(0);
  const Operand b = f.l.apart(f.activation(1), a, f.name(".copy"));
  const bool replace_a = f.l.may_replace(a);
  if (replace_a || f.l.may_replace(b)) {
    f.set_output(replace_a ? a : b);
    f.l.writer.op(f.name(".forward"), {.op = AddForward{}, .in_place = true},
                  {replace_a ? a : b, replace_a ? b : a});
  } else {
    f.l.writer.op(f.name(".forward"), {AddForward{}}, {a, b, f.new_output()});
  }
}

/// Both inputs have the gradient of the sum.
void Add::backward(const BackwardPass& b) const {
  b.contribute(b.d, 0);
  b.contribute(b.d, 1);
}

}  // namespace tidepool::nn
