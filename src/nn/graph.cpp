#include "nn/graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace tidepool::nn {
namespace {

/// Keeps all sizes in bytes far from overflow for every batch a machine can hold.
constexpr std::int64_t kMaxSampleElements = std::int64_t{1} << 31;

}  // namespace

Result<ValueType> infer_type(const LayerSpec& spec, const std::vector<ValueType>& inputs) {
  auto type = std::visit([&](const auto& layer) { return layer.infer(inputs); }, spec);
  if (!type) return type;
  std::int64_t room = kMaxSampleElements;
  for (const std::int64_t dim : type->dims) {
    if (dim < 1) {
      return fail(ErrorCode::usage, fmt::format("would make a value of size {}", to_string(*type)));
    }
    room /= dim;
  }
  if (room == 0) {
    return fail(ErrorCode::usage,
                fmt::format("would make a value of size {}, which is too large", to_string(*type)));
  }
  return type;
}

GraphBuilder::GraphBuilder(std::string name) { graph_.name = std::move(name); }

ValueId GraphBuilder::reject(std::string_view layer, const std::string& why) {
  if (!error_) {
    error_ = Error{ErrorCode::usage, fmt::format("{}: layer '{}' {}", graph_.name, layer, why),
                   std::nullopt};
  }
  return -1;
}

ValueId GraphBuilder::input(std::string_view name, const ValueType& type) {
  return add(name, Input{type}, {});
}

ValueId GraphBuilder::images(const ImageShape& image) {
  graph_.image = image;
  graph_.images = input("images", {{image.channels, image.height, image.width}, ElementType::f32});
  return graph_.images;
}

ValueId GraphBuilder::labels() { return input("labels", {{}, ElementType::i32}); }

ValueId GraphBuilder::pixel_labels(const ImageShape& image) {
  return input("labels", {{image.height, image.width}, ElementType::i32});
}

ValueId GraphBuilder::tokens(std::int64_t sequence) {
  return input("tokens", {{sequence}, ElementType::i32});
}

ValueId GraphBuilder::token_labels(std::int64_t sequence) {
  return input("labels", {{sequence}, ElementType::i32});
}

std::string GraphBuilder::tie_error(const TiedLinear& spec, const ValueType& input) const {
  const auto owner = std::find_if(graph_.layers.begin(), graph_.layers.end(),
                                  [&](const Layer& layer) { return layer.name == spec.owner; });
  const Embedding* embedding =
      owner == graph_.layers.end() ? nullptr : std::get_if<Embedding>(&owner->spec);
  if (embedding == nullptr) {
    return fmt::format("takes the weight of '{}', which is no embedding before it", spec.owner);
  }
  if (embedding->vocabulary == spec.features && embedding->width == input.dims.back()) return {};
  return fmt::format("makes {} numbers of {}, the table of '{}' is {}x{}", spec.features,
                     input.dims.back(), spec.owner, embedding->vocabulary, embedding->width);
}

void GraphBuilder::begin_branch(double survival) {
  if (error_) return;
  const auto number = std::ssize(graph_.survival);
  const std::string name = fmt::format("of branch {}", number + 1);
  if (guard_ != kNone) {
    reject(name, "begins inside another branch");
  } else if (!(survival > 0 && survival <= 1)) {
    reject(name, fmt::format("survives with a probability in (0, 1], not {}", survival));
  } else if (number == kMostGuards) {
    reject(name, fmt::format("is one too many: a graph has up to {}", kMostGuards));
  } else {
    graph_.survival.push_back(survival);
    guard_ = static_cast<std::int32_t>(number);
  }
}

void GraphBuilder::end_branch() { guard_ = kNone; }

std::string GraphBuilder::branch_error(const LayerSpec& spec,
                                       const std::vector<ValueId>& inputs) const {
  const auto guard_of = [&](std::size_t input) {
    return graph_.layers[graph_.values[inputs[input]].producer].guard;
  };
  if (std::holds_alternative<AddBranch>(spec)) {
    if (guard_ != kNone) return "adds a branch inside a branch";
    if (guard_of(0) == kNone && guard_of(1) != kNone) return {};
    return "adds the result of a branch to a value outside of branches";
  }
  if (guard_ != kNone && std::holds_alternative<TiedLinear>(spec)) {
    return "shares a weight with a layer that is not skipped with it";
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (guard_of(i) == kNone || guard_of(i) == guard_) continue;
    return fmt::format("reads '{}', which is in a branch that may be skipped without it",
                       graph_.values[inputs[i]].name);
  }
  return {};
}

/// What only branches read would have no gradient where all of them are skipped.
std::string GraphBuilder::readers_error(const Value& value) const {
  if (graph_.layers[value.producer].guard != kNone || value.consumers.empty()) return {};
  const bool outside =
      std::any_of(value.consumers.begin(), value.consumers.end(),
                  [&](LayerId reader) { return graph_.layers[reader].guard == kNone; });
  return outside ? "" : "is read by nothing but branches";
}

ValueId GraphBuilder::add(std::string_view name, const LayerSpec& spec,
                          const std::vector<ValueId>& inputs) {
  if (error_) return -1;
  std::vector<ValueType> types;
  for (const ValueId input : inputs) {
    if (input < 0 || input >= static_cast<ValueId>(graph_.values.size())) {
      return reject(name, "reads a value that does not exist");
    }
    types.push_back(graph_.values[input].type);
  }
  const bool taken = std::any_of(graph_.layers.begin(), graph_.layers.end(),
                                 [&](const Layer& layer) { return layer.name == name; });
  if (name.empty() || taken) return reject(name, "needs a name of its own");
  auto type = infer_type(spec, types);
  if (!type) return reject(name, type.error().message);
  if (const auto* tied = std::get_if<TiedLinear>(&spec)) {
    if (const std::string why = tie_error(*tied, types[0]); !why.empty()) return reject(name, why);
  }
  if (const std::string why = branch_error(spec, inputs); !why.empty()) return reject(name, why);

  const auto layer = static_cast<LayerId>(graph_.layers.size());
  const auto output = static_cast<ValueId>(graph_.values.size());
  for (const ValueId input : inputs) graph_.values[input].consumers.push_back(layer);
  const bool plain_name = traits_of(spec).role != LayerRole::hidden;
  graph_.values.push_back(
      {std::string(name) + (plain_name ? "" : ".out"), std::move(*type), layer, {}});
  graph_.layers.push_back({std::string(name), spec, inputs, output, guard_});
  return output;
}

Result<Graph> GraphBuilder::finish(ValueId loss) {
  if (error_) return fail(*error_);
  const auto& values = graph_.values;
  if (loss < 0 || loss >= static_cast<ValueId>(values.size()) ||
      graph_.traits(values[loss].producer).role != LayerRole::loss) {
    return fail(ErrorCode::usage, graph_.name + ": the last value must be a loss");
  }
  for (const Value& value : values) {
    if (value.consumers.empty() != (&value == &values[loss])) {
      return fail(ErrorCode::usage, fmt::format("{}: value '{}' must {}be used", graph_.name,
                                                value.name, value.consumers.empty() ? "" : "not "));
    }
    if (const std::string why = readers_error(value); !why.empty()) {
      return fail(ErrorCode::usage, fmt::format("{}: value '{}' {}", graph_.name, value.name, why));
    }
  }
  graph_.loss = loss;
  if (const LayerId last = values[loss].producer; graph_.traits(last).classifies) {
    graph_.labels = graph_.layers[last].inputs[1];
    const ValueType& logits = values[graph_.layers[last].inputs[0]].type;
    graph_.classes = logits.dims.size() == 3 ? logits.dims.front() : logits.dims.back();
    graph_.answers = values[graph_.labels].type.elements();
    const auto* loss_spec = std::get_if<SoftmaxCrossEntropy>(&graph_.layers[last].spec);
    if (loss_spec != nullptr && loss_spec->answers > 0) graph_.answers = loss_spec->answers;
  }
  return std::exchange(graph_, Graph{});
}

}  // namespace tidepool::nn
