#include "nn/layers/max_pool.h"

#include <utility>

#include "nn/layers/shape_rules.h"
#include "nn/passes.h"

namespace tidepool::nn {

Result<ValueType> MaxPool::infer(InputTypes inputs) const {
  if (auto image = expect_image(inputs); !image) return fail(image.error());
  if (window.area() > 256) {
    return fail(ErrorCode::usage,
                "a position in a window of more than 256 elements does not fit into a byte");
  }
  return slide(inputs, inputs[0].dims[0], {window, stride, padding});
}

void MaxPool::forward(const ForwardPass& f) const {
  const Operand x = f.activation();
  const Operand y = f.new_output();
  f.state().inputs = {x};
  TensorDesc index_desc = y.desc;
  index_desc.type = ElementType::u8;
  const Operand index = f.new_activation(".index", std::move(index_desc));
  f.state().saved = {index};
  f.l.writer.op(f.name(".forward"), {MaxPoolForward{{window, stride, padding}}}, {x, y, index});
}

void MaxPool::backward(const BackwardPass& b) const {
  if (!b.input_needs_gradient()) return;
  const Operand dx = b.new_input_gradient();
  b.write_pool_backward({MaxPoolBackward{{window, stride, padding}}},
                        {b.d, b.state().saved[0], dx});
  b.contribute(dx);
}

}  // namespace tidepool::nn
