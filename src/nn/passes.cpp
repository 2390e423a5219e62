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

// Note [Shared weights]. The gradient of a weight that several layers read is the sum of their
// parts: its owner's, then those of the others in the order of the backward pass. Rounds add such
// sums, as the host does with those of several devices, and the order of additions is that of the
// whole sums whatever tensor they are made in. In the first round the owner writes the gradient and
// the others' parts are added to it. In those that follow the owner adds to the first part it
// finds, to which the others are added, and that sum goes to the gradient.
Operand BackwardPass::parameter_gradient(std::size_t index) const {
  LayerParameter& parameter = l.parameters[id].learnable[index];
  if (l.round == 0) {
    parameter.gradient = l.writer.tensor("grad:" + l.writer.name_of(parameter.weight.tensor),
                                         parameter.weight.desc, TensorKind::gradient);
  } else if (!parameter.shared.empty()) {
    return parameter.shared[0];
  }
  return parameter.gradient;
}

Operand BackwardPass::shared_gradient(LayerId owner, std::size_t index) const {
  assert(owner < id && "its backward pass comes later");
  LayerParameter& parameter = l.parameters[owner].learnable[index];
  parameter.shared.push_back(
      l.writer.tensor("grad:" + l.writer.name_of(parameter.weight.tensor) + "." + layer().name,
                      parameter.weight.desc, TensorKind::gradient));
  return parameter.shared.back();
}

void BackwardPass::update(std::size_t index) const {
  LayerParameter& parameter = l.parameters[id].learnable[index];
  const std::string& weight_name = l.writer.name_of(parameter.weight.tensor);
  const std::vector<Operand> parts = std::exchange(parameter.shared, {});
  const bool first = l.round == 0;
  for (std::size_t i = first ? 0 : 1; i < parts.size(); ++i) {
    l.writer.op(fmt::format("{}.tie{}", weight_name, i + 1), {.op = AddForward{}, .in_place = true},
                {first ? parameter.gradient : parts[0], parts[i]});
  }
  if (!first && !parts.empty()) {
    l.writer.op(weight_name + ".accumulate", {.op = AddForward{}, .in_place = true},
                {parameter.gradient, parts[0]});
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
  l.writer.op(name(".backward_bias"), {ChannelBiasBackward{}}, {d, parameter_gradient(index)});
  update(index);
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
