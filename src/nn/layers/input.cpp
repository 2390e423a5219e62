#include "nn/layers/input.h"

#include <utility>

#include "nn/layers/shape_rules.h"
#include "nn/passes.h"

namespace tidepool::nn {

Result<ValueType> Input::infer(InputTypes inputs) const {
  if (auto count = expect_inputs(inputs, 0); !count) return fail(count.error());
  return type;
}

/// Data arrives in the plain layout.
void Input::forward(const ForwardPass& f) const {
  const std::string& name = f.layer().name;
  TensorDesc desc = f.l.batched(type);
  desc.layout = Layout::plain;
  const Operand tensor = f.l.writer.tensor(name, std::move(desc), TensorKind::input);
  f.set_output(tensor);
  std::size_t index = 0;
  while (f.l.out.inputs[index].name != name) ++index;
  f.l.writer.op("feed_" + name, {Feed{index, name}}, {tensor});
}

void Input::backward(const BackwardPass& /*b*/) const {}

}  // namespace tidepool::nn
