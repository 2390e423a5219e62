#include "nn/layers/global_avg_pool.h"

#include "nn/layers/shape_rules.h"
#include "nn/passes.h"

namespace tidepool::nn {
namespace {

Window whole_image(const TensorDesc& x) { return {{x.dims[2], x.dims[3]}, 1, 0}; }

}  // namespace

Result<ValueType> GlobalAvgPool::infer(InputTypes inputs) const {
  if (auto image = expect_image(inputs); !image) return fail(image.error());
  return ValueType{{inputs[0].dims[0], 1, 1}, ElementType::f32};
}

void GlobalAvgPool::forward(const ForwardPass& f) const {
  const Operand x = f.activation();
  f.state().inputs = {x};
  f.l.writer.op(f.name(".forward"), {AvgPoolForward{whole_image(x.desc)}}, {x, f.new_output()});
}

void GlobalAvgPool::backward(const BackwardPass& b) const {
  if (!b.input_needs_gradient()) return;
  const Operand dx = b.new_input_gradient();
  b.write_pool_backward({AvgPoolBackward{whole_image(dx.desc)}}, {b.d, dx});
  b.contribute(dx);
}

}  // namespace tidepool::nn
