#include "nn/layers/add_branch.h"

#include "nn/layers/shape_rules.h"
#include "nn/passes.h"

namespace tidepool::nn {

Result<ValueType> AddBranch::infer(InputTypes inputs) const { return same_shapes(inputs); }

/// An op that is skipped leaves nothing in what it writes: so the sum is there without the branch
/// first, as the carried value's own bytes or a copy of them, and the guarded op updates it.
void AddBranch::forward(const ForwardPass& f) const {
  const Operand carried = f.activation(0);
  const std::int32_t guard = f.l.guard_of(f.layer().inputs[1]);
  Operand sum = carried;
  if (!f.l.may_replace(carried)) {
    sum = f.new_output();
    f.l.writer.op(f.name(".carry"), {Reorder{}}, {carried, sum});
  }
  f.set_output(sum);
  AddForward add;
  if (!f.l.training()) add.factor = static_cast<float>(f.l.graph.survival[guard]);
  const ProgramWriter::Guard scope(f.l.writer, f.l.training() ? guard : kNone);
  f.l.writer.op(f.name(".forward"), {.op = add, .in_place = true}, {sum, f.activation(1)});
}

/// Both inputs have the gradient of the sum. The branch's ops read it only where it ran.
void AddBranch::backward(const BackwardPass& b) const {
  b.contribute(b.d, 0);
  b.contribute(b.d, 1);
}

}  // namespace tidepool::nn
