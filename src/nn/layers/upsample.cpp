#include "nn/layers/upsample.h"

#include <fmt/format.h>

#include "nn/layers/shape_rules.h"
#include "nn/passes.h"

namespace tidepool::nn {

Result<ValueType> Upsample::infer(InputTypes inputs) const {
  if (auto image = expect_image(inputs); !image) return fail(image.error());
  constexpr std::int64_t kMost = 1 << 10;  // keeps sizes far from overflow
  if (factor < 1 || factor > kMost) {
    return fail(ErrorCode::usage,
                fmt::format("needs a factor from 1 to {}, not {}", kMost, factor));
  }
  const auto& dims = inputs[0].dims;
  return ValueType{{dims[0], dims[1] * factor, dims[2] * factor}, ElementType::f32};
}

void Upsample::forward(const ForwardPass& f) const {
  const Operand x = f.activation();
  f.state().inputs = {x};
  f.l.writer.op(f.name(".forward"), {UpsampleForward{{factor, bilinear}}}, {x, f.new_output()});
}

void Upsample::backward(const BackwardPass& b) const {
  if (!b.input_needs_gradient()) return;
  const Operand dx = b.new_input_gradient();
  b.l.writer.op(b.name(".backward"), {UpsampleBackward{{factor, bilinear}}}, {b.d, dx});
  b.contribute(dx);
}

}  // namespace tidepool::nn
