#include "nn/passes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <utility>

#include "nn/optimizers.h"

namespace tidepool::nn {

Operand rows_of(const Operand& x) {
  assert(x.desc.layout == Layout::plain && !x.desc.dims.empty());
  const std::int64_t width = x.desc.dims.back();
  return {x.tensor, TensorDesc{{x.desc.elements() / width, width}, x.desc.type}};
}

Operand weight_for_backward_data(Lowering& lowering, const Layer& layer, const Operand& weight) {
  TensorDesc desc = weight.desc;
  if (in_blocks(desc.layout, 16) != Layout::OIhw16i16o) return weight;
  desc.layout = in_blocks(Layout::OIhw16o16i, block_of(desc.layout));
  Operand copy = lowering.writer.tensor(layer.name + ".weight.reordered", std::move(desc),
                                        TensorKind::workspace);
  lowering.writer.op(layer.name + ".reorder_weight", {Reorder{}}, {weight, copy});
  return copy;
}

Operand ForwardPass::activation(std::size_t index) const {
  const ValueId value = layer().inputs[index];
  const TensorDesc wanted = l.batched(l.graph.values[value].type);
  if (stored(index).desc == wanted) return stored(index);
  const std::string number = index == 0 ? "" : std::to_string(index + 1);
  const Operand copy =
      l.writer.tensor(layer().name + ".input" + number, wanted, TensorKind::activation);
  l.writer.op(layer().name + ".reorder_input" + number, {Reorder{}}, {stored(index), copy});
  return copy;
}

void ForwardPass::add_channel_bias(const Operand& y, std::int64_t channels) const {
  const Operand bias = l.add_parameter(id, "bias", TensorDesc{{channels}}, Initialiser::zero, 1);
  l.writer.op(name(".add_bias"), {ChannelBiasForward{}}, {y, bias});
}

void ForwardPass::pass_on(const Operand& x) const {
  state().view = true;
  set_output(x);
}

Operand BackwardPass::new_parameter_gradient(std::size_t index) const {
  const Operand& parameter = weight(index);
  return l.writer.tensor("grad:" + l.writer.name_of(parameter.tensor), parameter.desc,
                         TensorKind::gradient);
}

void BackwardPass::share(LayerId owner, std::size_t index, const Operand& gradient) const {
  assert(owner < id && "its backward pass comes later");
  l.parameters[owner].learnable[index].shared.push_back(gradient);
}

void BackwardPass::update(std::size_t index, const Operand& gradient) const {
  LayerParameter& parameter = l.parameters[id].learnable[index];
  const std::string& weight_name = l.writer.name_of(parameter.weight.tensor);
  int number = 0;
  for (const Operand& part : std::exchange(parameter.shared, {})) {
    l.writer.op(fmt::format("{}.tie{}", weight_name, ++number),
                {.op = AddForward{}, .in_place = true}, {gradient, part});
  }
  if (l.round == 0) {
    parameter.gradient = gradient;
  } else {
    l.writer.op(weight_name + ".accumulate", {.op = AddForward{}, .in_place = true},
                {parameter.gradient, gradient});
  }
  if (!l.last_round()) return;
  if (l.options.devices > 1) {
    if (l.options.naive_accumulation) return;  // `collect_held_gradients` does, at the end
    const auto known = std::ranges::find(l.out.parameters, weight_name, &Parameter::name);
    const auto index_of_all = static_cast<std::size_t>(known - l.out.parameters.begin());
    l.writer.op(weight_name + ".collect", {CollectGradient{index_of_all}}, {parameter.gradient});
    return;
  }
  std::vector<Operand> operands{parameter.gradient, l.control, parameter.weight};
  operands.insert(operands.end(), parameter.optimizer_state.begin(),
                  parameter.optimizer_state.end());
  l.writer.op(weight_name + ".update", {update_op(l.options)}, operands);
}

void BackwardPass::update_channel_bias(std::size_t index) const {
  const Operand gradient = new_parameter_gradient(index);
  l.writer.op(name(".backward_bias"), {ChannelBiasBackward{}}, {d, gradient});
  update(index, gradient);
}

void BackwardPass::write_pool_backward(OpDesc desc, std::vector<Operand> operands) const {
  if (!in_place()) {
    desc.reads_forward = true;
    operands.push_back(state().inputs[0]);
    operands.push_back(output());
  }
  l.writer.op(name(".backward"), std::move(desc), operands);
}

}  // namespace tidepool::nn
