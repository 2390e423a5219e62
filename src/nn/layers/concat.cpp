#include "nn/layers/concat.h"

#include <fmt/format.h>

#include <utility>

#include "nn/layers/shape_rules.h"
#include "nn/passes.h"

namespace tidepool::nn {

Result<ValueType> Concat::infer(InputTypes inputs) const {
  if (inputs.size() < 2) {
    return fail(ErrorCode::usage, fmt::format("takes two inputs or more, not {}", inputs.size()));
  }
  ValueType all = inputs[0];
  std::int64_t channels = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (auto image = expect_image(inputs.subspan(i, 1)); !image) return fail(image.error());
    const ValueType& input = inputs[i];
    if (input.dims[1] != all.dims[1] || input.dims[2] != all.dims[2]) {
      return fail(ErrorCode::usage, fmt::format("needs images of one size, not {} and {}",
                                                to_string(inputs[0]), to_string(input)));
    }
    channels += input.dims[0];
  }
  all.dims[0] = channels;
  return all;
}

void Concat::forward(const ForwardPass& f) const {
  std::vector<Operand> operands;
  for (std::size_t i = 0; i < f.layer().inputs.size(); ++i) {
    Operand x = f.activation(i);
    for (const Operand& other : operands) {
      x = f.l.apart(x, other, fmt::format("{}.copy{}", f.layer().name, i + 1));
    }
    operands.push_back(std::move(x));
  }
  const ConcatForward op{static_cast<std::int64_t>(operands.size())};
  operands.push_back(f.new_output());
  f.l.writer.op(f.name(".forward"), {op}, operands);
}

void Concat::backward(const BackwardPass& b) const {
  std::int64_t first = 0;
  for (std::size_t i = 0; i < b.layer().inputs.size(); ++i) {
    if (b.input_needs_gradient(i)) {
      const Operand dx = b.new_input_gradient(i);
      b.l.writer.op(fmt::format("{}.backward{}", b.layer().name, i + 1), {ConcatBackward{first}},
                    {b.d, dx});
      b.contribute(dx, i);
    }
    first += b.l.graph.values[b.layer().inputs[i]].type.dims[0];
  }
}

}  // namespace tidepool::nn
