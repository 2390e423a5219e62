// The forward pass: one case per kind of layer.
#include <utility>

#include "base/random.h"
#include "nn/lowering.h"

namespace tidepool::nn {
namespace {

OpDesc make_desc(OpKind kind) {
  OpDesc desc;
  desc.kind = kind;
  return desc;
}

/// Names a layer in the counter-based generator, whatever else the graph contains.
std::uint64_t random_key(const std::string& name) {
  std::uint64_t key = 0;
  for (const char c : name) key = hash_combine(key, static_cast<unsigned char>(c));
  return key;
}

/// An input of the layer in the layout of activations. Only images come in another one.
Operand activation_input(Lowering& l, LayerId id, std::size_t index = 0) {
  const ValueId value = l.layer(id).inputs[index];
  const Operand& stored = l.values[value];
  const TensorDesc wanted = l.batched(l.graph.values[value].type);
  if (stored.desc == wanted) return stored;
  const std::string& name = l.layer(id).name;
  const std::string number = index == 0 ? "" : std::to_string(index + 1);
  const Operand copy = l.writer.tensor(name + ".input" + number, wanted, TensorKind::activation);
  l.writer.op(name + ".reorder_input" + number, make_desc(OpKind::reorder), {stored, copy});
  return copy;
}

void pass_on(Lowering& l, LayerId id, const Operand& x) {
  l.states[id].view = true;
  l.values[l.layer(id).output] = x;
}

void forward(Lowering& l, LayerId id, const Input& spec) {
  const Value& value = l.graph.values[l.layer(id).output];
  TensorDesc desc = l.batched(value.type);
  desc.layout = Layout::plain;
  const bool images = spec.role == Input::Role::images;
  const Operand tensor = l.writer.tensor(value.name, std::move(desc), TensorKind::input);
  l.values[l.layer(id).output] = tensor;
  l.writer.op(images ? "feed_images" : "feed_labels",
              make_desc(images ? OpKind::feed_images : OpKind::feed_labels), {tensor});
}

void forward(Lowering& l, LayerId id, const Conv2d& spec) {
  const Operand x = l.values[l.layer(id).inputs[0]];
  const std::int64_t in_channels = x.desc.dims[1];
  TensorDesc weight_desc{{spec.channels, in_channels, spec.window, spec.window}};
  if (l.kernels.blocked_layouts) {
    weight_desc.layout = x.desc.layout == Layout::plain ? Layout::Ohwi16o : Layout::OIhw16i16o;
  }
  const Operand weight = l.add_parameter(id, "weight", weight_desc, Initialiser::he_normal,
                                         in_channels * spec.window * spec.window);
  l.states[id].inputs = {x};
  OpDesc desc = make_desc(OpKind::conv_forward);
  desc.window = spec.window;
  desc.stride = spec.stride;
  desc.padding = spec.padding;
  l.writer.op(l.layer(id).name + ".forward", desc, {x, weight, l.new_output(id)});
}

void forward(Lowering& l, LayerId id, const BatchNorm& spec) {
  const Operand x = activation_input(l, id);
  const std::string& name = l.layer(id).name;
  const TensorDesc channel{{x.desc.dims[1]}};
  const Operand scale = l.add_parameter(id, "scale", channel, Initialiser::one, 1);
  const Operand shift = l.add_parameter(id, "shift", channel, Initialiser::zero, 1);
  const Operand running_mean = l.add_statistic(id, "running_mean", channel, Initialiser::zero);
  const Operand running_variance =
      l.add_statistic(id, "running_variance", channel, Initialiser::one);
  const Operand y = l.new_output(id);
  if (!l.training()) {
    OpDesc desc = make_desc(OpKind::batch_norm_inference);
    desc.epsilon = spec.epsilon;
    l.writer.op(name + ".forward", desc, {x, scale, shift, running_mean, running_variance, y});
    return;
  }
  const Operand mean = l.writer.tensor(name + ".mean", channel, TensorKind::activation);
  const Operand variance = l.writer.tensor(name + ".variance", channel, TensorKind::activation);
  l.states[id].inputs = {x};
  l.states[id].saved = {mean, variance};

  OpDesc desc = make_desc(OpKind::batch_norm_forward);
  desc.epsilon = spec.epsilon;
  l.writer.op(name + ".forward", desc, {x, scale, shift, y, mean, variance});
  OpDesc statistics = make_desc(OpKind::batch_norm_statistics);
  statistics.statistics_momentum = spec.statistics_momentum;
  statistics.statistics_count = x.desc.elements() / x.desc.dims[1];
  l.writer.op(name + ".statistics", statistics, {mean, variance, running_mean, running_variance});
}

void forward(Lowering& l, LayerId id, const Relu&) {
  const Operand x = activation_input(l, id);
  l.states[id].inputs = {x};
  OpDesc desc = make_desc(OpKind::relu_forward);
  const std::string name = l.layer(id).name + ".forward";
  if (l.may_overwrite(x)) {
    desc.in_place = true;
    l.values[l.layer(id).output] = x;
    l.writer.op(name, desc, {x});
  } else {
    l.writer.op(name, desc, {x, l.new_output(id)});
  }
}

void forward(Lowering& l, LayerId id, const MaxPool& spec) {
  const Operand x = activation_input(l, id);
  const Operand y = l.new_output(id);
  l.states[id].inputs = {x};
  TensorDesc index_desc = y.desc;
  index_desc.type = ElementType::u8;
  const std::string& name = l.layer(id).name;
  const Operand index =
      l.writer.tensor(name + ".index", std::move(index_desc), TensorKind::activation);
  l.states[id].saved = {index};
  OpDesc desc = make_desc(OpKind::max_pool_forward);
  desc.window = spec.window;
  desc.stride = spec.stride;
  desc.padding = spec.padding;
  l.writer.op(name + ".forward", desc, {x, y, index});
}

void forward(Lowering& l, LayerId id, const AvgPool& spec) {
  const Operand x = activation_input(l, id);
  l.states[id].inputs = {x};
  OpDesc desc = make_desc(OpKind::avg_pool_forward);
  desc.window = spec.window;
  desc.stride = spec.stride;
  l.writer.op(l.layer(id).name + ".forward", desc, {x, l.new_output(id)});
}

void forward(Lowering& l, LayerId id, const Add&) {
  const std::string name = l.layer(id).name + ".forward";
  const Operand a = activation_input(l, id, 0);
  const Operand b = l.apart(activation_input(l, id, 1), a, l.layer(id).name + ".copy");
  OpDesc desc = make_desc(OpKind::add_forward);
  const bool replace_a = l.may_replace(a);
  if (replace_a || l.may_replace(b)) {
    desc.in_place = true;
    l.values[l.layer(id).output] = replace_a ? a : b;
    l.writer.op(name, desc, {replace_a ? a : b, replace_a ? b : a});
  } else {
    l.writer.op(name, desc, {a, b, l.new_output(id)});
  }
}

void forward(Lowering& l, LayerId id, const Dropout& spec) {
  if (!l.options.dropout || spec.rate == 0) return pass_on(l, id, l.values[l.layer(id).inputs[0]]);
  const Operand x = activation_input(l, id);
  const std::string& name = l.layer(id).name;
  OpDesc desc = make_desc(OpKind::dropout_forward);
  desc.drop_rate = spec.rate;
  desc.random_key = random_key(name);
  l.states[id].random_key = desc.random_key;
  if (l.may_overwrite(x)) {
    desc.in_place = true;
    l.values[l.layer(id).output] = x;
    l.writer.op(name + ".forward", desc, {x, l.control});
  } else {
    const Operand y = l.new_output(id);
    TensorDesc mask_desc = y.desc;
    mask_desc.type = ElementType::u8;
    const Operand mask =
        l.writer.tensor(name + ".mask", std::move(mask_desc), TensorKind::activation);
    l.states[id].saved = {mask};
    l.writer.op(name + ".forward", desc, {x, l.control, y, mask});
  }
}

void forward(Lowering& l, LayerId id, const Linear& spec) {
  const Operand x = l.values[l.layer(id).inputs[0]];
  const std::int64_t in_features = x.desc.dims[1];
  const Operand weight = l.add_parameter(id, "weight", TensorDesc{{spec.features, in_features}},
                                         Initialiser::he_normal, in_features);
  const Operand bias =
      l.add_parameter(id, "bias", TensorDesc{{spec.features}}, Initialiser::zero, 1);
  l.states[id].inputs = {x};
  l.writer.op(l.layer(id).name + ".forward", make_desc(OpKind::linear_forward),
              {x, weight, bias, l.new_output(id)});
}

/// A view where the bytes are in plain order already: blocks of 16 channels of 1x1 are.
void forward(Lowering& l, LayerId id, const Flatten&) {
  const Operand x = l.values[l.layer(id).inputs[0]];
  const TensorDesc flat = l.batched(l.graph.values[l.layer(id).output].type);
  const auto& dims = x.desc.dims;
  const bool blocked = x.desc.layout != Layout::plain;
  if (!blocked || (dims[1] % 16 == 0 && dims[2] == 1 && dims[3] == 1)) {
    return pass_on(l, id, {x.tensor, flat});
  }
  TensorDesc plain{dims, x.desc.type, Layout::plain};
  const std::string& name = l.layer(id).name;
  const Operand y = l.writer.tensor(name + ".out", std::move(plain), TensorKind::activation);
  l.values[l.layer(id).output] = {y.tensor, flat};
  l.writer.op(name + ".forward", make_desc(OpKind::reorder), {x, y});
}

void forward(Lowering& l, LayerId id, const SoftmaxCrossEntropy&) {
  const Operand logits = l.values[l.layer(id).inputs[0]];
  const Operand labels = l.values[l.layer(id).inputs[1]];
  const std::string& name = l.layer(id).name;
  const Operand loss = l.writer.tensor(name, TensorDesc{{1}}, TensorKind::activation);
  const Operand probabilities =
      l.writer.tensor(name + ".probabilities", logits.desc, TensorKind::activation);
  l.values[l.layer(id).output] = loss;
  l.states[id].inputs = {logits, labels};
  l.states[id].saved = {probabilities};
  OpDesc desc = make_desc(OpKind::softmax_loss_forward);
  desc.full_batch = l.training() ? l.options.batch : 1;
  l.writer.op(name + ".forward", desc, {logits, labels, loss, probabilities});
}

}  // namespace

void emit_forward(Lowering& lowering) {
  const auto run = [&](bool inputs) {
    for (LayerId id = 0; id < static_cast<LayerId>(lowering.graph.layers.size()); ++id) {
      const LayerSpec& spec = lowering.layer(id).spec;
      if (std::holds_alternative<Input>(spec) != inputs) continue;
      std::visit([&](const auto& layer) { forward(lowering, id, layer); }, spec);
    }
  };
  run(true);
  if (lowering.training() && lowering.round == 0) {
    const TensorDesc block{{static_cast<std::int64_t>(sizeof(ControlBlock))}, ElementType::u8};
    lowering.control = lowering.writer.tensor("control", block, TensorKind::input);
    lowering.writer.op("feed_control", make_desc(OpKind::feed_control), {lowering.control});
  }
  run(false);
}

}  // namespace tidepool::nn
