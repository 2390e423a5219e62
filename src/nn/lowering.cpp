#include "nn/lowering.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <utility>

#include "nn/optimizers.h"

namespace tidepool::nn {
namespace {

std::vector<bool> values_that_need_gradients(const Graph& graph) {
  std::vector<bool> needed(graph.values.size(), false);
  for (const Layer& layer : graph.layers) {
    bool need = traits_of(layer.spec).has_weights;
    for (const ValueId input : layer.inputs) need = need || needed[input];
    needed[layer.output] = need;
  }
  return needed;
}

/// How many values an input of indices may have; 0 where it has no indices.
std::int64_t classes_of(const Graph& graph, ValueId input) {
  std::int64_t classes = input == graph.labels ? graph.classes : 0;
  for (const LayerId reader : graph.values[input].consumers) {
    const auto* embedding = std::get_if<Embedding>(&graph.layers[reader].spec);
    if (embedding == nullptr) continue;
    classes = classes == 0 ? embedding->vocabulary : std::min(classes, embedding->vocabulary);
  }
  return classes;
}

}  // namespace

Lowering::Lowering(const Graph& graph_in, const TrainingOptions& options_in,
                   const KernelList& kernels_in, TrainingProgram& out_in)
    : graph(graph_in),
      options(options_in),
      kernels(kernels_in),
      out(out_in),
      writer(out_in, kernels_in),
      values(graph_in.values.size()),
      needs_gradient(values_that_need_gradients(graph_in)),
      states(graph_in.layers.size()),
      parameters(graph_in.layers.size()) {
  for (const Layer& each : graph.layers) {
    if (traits_of(each.spec).role != LayerRole::input) continue;
    out.inputs.push_back(
        {each.name, graph.values[each.output].type, classes_of(graph, each.output)});
  }
}

void Lowering::begin_round(std::int64_t index) {
  const Program& program = out.program;
  round = index;
  const std::int64_t first = round * program.sub_batch;
  samples = std::min(program.sub_batch, program.batch - first);
  writer.begin_round(static_cast<std::int32_t>(round), first);
  values.assign(values.size(), {});
  states.assign(states.size(), {});
}

LayerId Lowering::find_layer(const std::string& name) const {
  const auto found = std::find_if(graph.layers.begin(), graph.layers.end(),
                                  [&](const Layer& each) { return each.name == name; });
  assert(found != graph.layers.end());
  return static_cast<LayerId>(found - graph.layers.begin());
}

LayerId Lowering::maker_of(ValueId value) const {
  LayerId maker = graph.values[value].producer;
  while (states[maker].view) maker = graph.values[layer(maker).inputs[0]].producer;
  return maker;
}

TensorDesc Lowering::batched(const ValueType& type) const {
  TensorDesc desc;
  desc.dims.push_back(samples);
  desc.dims.insert(desc.dims.end(), type.dims.begin(), type.dims.end());
  desc.type = type.type;
  if (desc.dims.size() == 4) desc.layout = in_blocks(Layout::nChw16c, kernels.channel_block);
  return desc;
}

bool Lowering::may_overwrite(const Operand& x) const {
  return options.storage == Storage::in_place && is_read_once(x);
}

bool Lowering::is_read_once(const Operand& x) const {
  for (std::size_t v = 0; v < values.size(); ++v) {
    if (values[v].tensor != x.tensor) continue;
    const Value& value = graph.values[v];
    if (value.consumers.size() != 1) return false;
    const LayerTraits maker = graph.traits(value.producer);
    if (maker.role == LayerRole::input || maker.reads_output) return false;
  }
  return true;
}

bool Lowering::may_replace(const Operand& x) const {
  for (std::size_t v = 0; training() && v < values.size(); ++v) {
    if (values[v].tensor != x.tensor) continue;
    if (graph.traits(graph.values[v].producer).reads_sign_of_output) return false;
  }
  return may_overwrite(x);
}

Operand Lowering::new_output(LayerId id) {
  const Value& value = graph.values[layer(id).output];
  Operand y = writer.tensor(value.name, batched(value.type), TensorKind::activation);
  values[layer(id).output] = y;
  return y;
}

Operand Lowering::new_gradient(ValueId value) {
  const Operand& stored = values[value];
  const std::string base = "grad:" + writer.name_of(stored.tensor);
  std::string name = base;
  for (int i = 2; writer.name_taken(name); ++i) name = fmt::format("{}#{}", base, i);
  return writer.tensor(std::move(name), stored.desc, TensorKind::gradient);
}

Operand Lowering::apart(const Operand& x, const Operand& other, const std::string& name) {
  if (x.tensor != other.tensor) return x;
  const TensorKind kind = out.program.tensors[x.tensor].kind;
  const Operand copy =
      writer.tensor(name, x.desc, kind == TensorKind::input ? TensorKind::activation : kind);
  writer.op(name, {Reorder{}}, {x, copy});
  return copy;
}

Operand Lowering::add_parameter(LayerId id, const std::string& suffix, const TensorDesc& desc,
                                Initialiser initialiser, std::int64_t fan_in) {
  const std::string name = layer(id).name + "." + suffix;
  for (const LayerParameter& known : parameters[id].learnable) {
    if (writer.name_of(known.weight.tensor) == name) return known.weight;
  }
  const Operand weight = writer.tensor(name, desc, TensorKind::weight, true);
  Parameter parameter{name, weight.tensor, {}, initialiser, fan_in, true};
  std::vector<Operand> state;
  for (const OperandRule& part : optimizer_state(options)) {
    if (!training() || options.devices > 1) break;  // the host has it then
    state.push_back(writer.tensor(name + "." + part.name, desc, TensorKind::optimizer_state, true));
    parameter.state.push_back(state.back().tensor);
  }
  out.parameters.push_back(std::move(parameter));
  parameters[id].learnable.push_back({weight, std::move(state), {}, {}});
  return weight;
}

Operand Lowering::add_statistic(LayerId id, const std::string& suffix, TensorDesc desc,
                                Initialiser initialiser) {
  const std::string name = layer(id).name + "." + suffix;
  for (const Operand& known : parameters[id].statistics) {
    if (writer.name_of(known.tensor) == name) return known;
  }
  const Operand statistic = writer.tensor(name, std::move(desc), TensorKind::weight, true);
  out.parameters.push_back({name, statistic.tensor, {}, initialiser, 1, false});
  parameters[id].statistics.push_back(statistic);
  return statistic;
}

std::size_t Lowering::name_statistic(LayerId id, const std::string& suffix,
                                     Initialiser initialiser) {
  const std::string name = layer(id).name + "." + suffix;
  const auto known = std::ranges::find(out.parameters, name, &Parameter::name);
  const auto index = static_cast<std::size_t>(known - out.parameters.begin());
  if (known == out.parameters.end()) {
    out.parameters.push_back({name, kNone, {}, initialiser, 1, false});
  }
  return index;
}

}  // namespace tidepool::nn
