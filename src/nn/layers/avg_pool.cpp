#include "nn/layers/avg_pool.h"

#include "nn/layers/shape_rules.h"
#include "nn/passes.h"

namespace tidepool::nn {

Result<ValueType> AvgPool::infer(InputTypes inputs) const {
  if (auto image = expect_image(inputs); !image) return fail(image.error());
  return slide(inputs, inputs[0].dims[0], {window, stride, padding});
}

void AvgPool::forward(const ForwardPass& f) const {
  const Operand x = f.activation();
  f.state().inputs = {x};
  f.l.writer.op(f.name(".forward"), {AvgPoolForward{{window, stride, padding}}},
                {x, f.new_output()});
}

void AvgPool::backward(const BackwardPass& b) const {
  if (!b.input_needs_gradient()) return;
  const Operand dx = b.new_input_gradient();
  b.write_pool_backward({AvgPoolBackward{{window, stride, padding}}}, {b.d, dx});
  b.contribute(dx);
}

}  // namespace tidepool::nn
