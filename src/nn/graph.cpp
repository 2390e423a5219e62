#include "nn/graph.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace tidepool::nn {
namespace {

using Types = std::vector<ValueType>;

/// Keeps all sizes in bytes far from overflow for every batch a machine can hold.
constexpr std::int64_t kMaxSampleElements = std::int64_t{1} << 31;

Result<void> expect_inputs(const Types& inputs, std::size_t count) {
  if (inputs.size() == count) return {};
  return fail(ErrorCode::usage,
              fmt::format("takes {} input{}, not {}", count, count == 1 ? "" : "s", inputs.size()));
}

Result<void> expect_rank(const ValueType& type, std::size_t rank, std::string_view what) {
  if (type.dims.size() == rank && type.type == ElementType::f32) return {};
  return fail(ErrorCode::usage, fmt::format("needs {}, not {}", what, to_string(type)));
}

Result<void> expect_image(const Types& inputs) {
  if (auto count = expect_inputs(inputs, 1); !count) return count;
  return expect_rank(inputs[0], 3, "a value of channels x height x width");
}

/// Output size of a window that slides over `size` padded elements.
Result<std::int64_t> windows(std::int64_t size, std::int64_t window, std::int64_t stride,
                             std::int64_t padding) {
  if (window < 1 || stride < 1 || padding < 0 || padding >= window) {
    return fail(ErrorCode::usage, fmt::format("window {}, stride {}, padding {} make no sense",
                                              window, stride, padding));
  }
  if (size + 2 * padding < window) {
    return fail(ErrorCode::usage,
                fmt::format("a window of {} does not fit into {} elements with padding {}", window,
                            size, padding));
  }
  return (size + 2 * padding - window) / stride + 1;
}

Result<ValueType> slide(const ValueType& in, std::int64_t channels, std::int64_t window,
                        std::int64_t stride, std::int64_t padding) {
  const auto height = windows(in.dims[1], window, stride, padding);
  if (!height) return fail(height.error());
  const auto width = windows(in.dims[2], window, stride, padding);
  if (!width) return fail(width.error());
  return ValueType{{channels, *height, *width}, ElementType::f32};
}

Result<ValueType> same_as_input(const Types& inputs) {
  if (auto count = expect_inputs(inputs, 1); !count) return fail(count.error());
  if (inputs[0].dims.empty() || inputs[0].type != ElementType::f32) {
    return fail(ErrorCode::usage, "needs a value of floats with channels");
  }
  return inputs[0];
}

Result<ValueType> infer(const Input& spec, const Types& inputs) {
  if (auto count = expect_inputs(inputs, 0); !count) return fail(count.error());
  if (spec.role == Input::Role::labels) return ValueType{{}, ElementType::i32};
  return ValueType{{spec.image.channels, spec.image.height, spec.image.width}, ElementType::f32};
}

Result<ValueType> infer(const Conv2d& spec, const Types& inputs) {
  if (auto image = expect_image(inputs); !image) return fail(image.error());
  return slide(inputs[0], spec.channels, spec.window, spec.stride, spec.padding);
}

Result<ValueType> infer(const BatchNorm& spec, const Types& inputs) {
  if (!(spec.epsilon > 0)) return fail(ErrorCode::usage, "needs a positive epsilon");
  return same_as_input(inputs);
}

Result<ValueType> infer(const Relu&, const Types& inputs) { return same_as_input(inputs); }

Result<ValueType> infer(const MaxPool& spec, const Types& inputs) {
  if (auto image = expect_image(inputs); !image) return fail(image.error());
  if (spec.window > 16) {
    return fail(ErrorCode::usage, "a position in a window larger than 16 does not fit into a byte");
  }
  return slide(inputs[0], inputs[0].dims[0], spec.window, spec.stride, spec.padding);
}

Result<ValueType> infer(const AvgPool& spec, const Types& inputs) {
  if (auto image = expect_image(inputs); !image) return fail(image.error());
  return slide(inputs[0], inputs[0].dims[0], spec.window, spec.stride, 0);
}

Result<ValueType> infer(const Add&, const Types& inputs) {
  if (auto count = expect_inputs(inputs, 2); !count) return fail(count.error());
  if (inputs[0] != inputs[1]) {
    return fail(ErrorCode::usage, fmt::format("needs two values of one shape, not {} and {}",
                                              to_string(inputs[0]), to_string(inputs[1])));
  }
  return same_as_input({inputs[0]});
}

Result<ValueType> infer(const Dropout& spec, const Types& inputs) {
  if (!(spec.rate >= 0 && spec.rate < 1)) {
    return fail(ErrorCode::usage, fmt::format("needs a rate in [0, 1), not {}", spec.rate));
  }
  return same_as_input(inputs);
}

Result<ValueType> infer(const Linear& spec, const Types& inputs) {
  if (auto count = expect_inputs(inputs, 1); !count) return fail(count.error());
  if (auto rank = expect_rank(inputs[0], 1, "a vector (flatten the value first)"); !rank) {
    return fail(rank.error());
  }
  return ValueType{{spec.features}, ElementType::f32};
}

Result<ValueType> infer(const Flatten&, const Types& inputs) {
  if (auto image = expect_image(inputs); !image) return fail(image.error());
  return ValueType{{inputs[0].elements()}, ElementType::f32};
}

Result<ValueType> infer(const SoftmaxCrossEntropy&, const Types& inputs) {
  if (auto count = expect_inputs(inputs, 2); !count) return fail(count.error());
  if (auto rank = expect_rank(inputs[0], 1, "a vector of logits"); !rank) {
    return fail(rank.error());
  }
  if (inputs[1] != ValueType{{}, ElementType::i32}) {
    return fail(ErrorCode::usage, "needs the labels as its second input");
  }
  return ValueType{{}, ElementType::f32};
}

}  // namespace

std::int64_t ValueType::elements() const {
  std::int64_t product = 1;
  for (const std::int64_t dim : dims) product *= dim;
  return product;
}

std::string to_string(const ValueType& type) {
  return type.dims.empty() ? "scalar" : fmt::format("{}", fmt::join(type.dims, "x"));
}

Result<ValueType> infer_type(const LayerSpec& spec, const std::vector<ValueType>& inputs) {
  auto type = std::visit([&](const auto& layer) { return infer(layer, inputs); }, spec);
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

ValueId GraphBuilder::images(const ImageShape& image) {
  graph_.image = image;
  graph_.images = add("images", Input{Input::Role::images, image}, {});
  return graph_.images;
}

ValueId GraphBuilder::labels() {
  graph_.labels = add("labels", Input{Input::Role::labels, {}}, {});
  return graph_.labels;
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

  const auto layer = static_cast<LayerId>(graph_.layers.size());
  const auto output = static_cast<ValueId>(graph_.values.size());
  for (const ValueId input : inputs) graph_.values[input].consumers.push_back(layer);
  const bool plain_name =
      std::holds_alternative<Input>(spec) || std::holds_alternative<SoftmaxCrossEntropy>(spec);
  graph_.values.push_back(
      {std::string(name) + (plain_name ? "" : ".out"), std::move(*type), layer, {}});
  graph_.layers.push_back({std::string(name), spec, inputs, output});
  return output;
}

Result<Graph> GraphBuilder::finish(ValueId loss) {
  if (error_) return fail(*error_);
  const auto& values = graph_.values;
  if (graph_.images < 0 || graph_.labels < 0) {
    return fail(ErrorCode::usage, graph_.name + ": a graph needs images and labels");
  }
  if (loss < 0 || loss >= static_cast<ValueId>(values.size()) ||
      !std::holds_alternative<SoftmaxCrossEntropy>(graph_.layers[values[loss].producer].spec)) {
    return fail(ErrorCode::usage, graph_.name + ": the last value must be a loss");
  }
  for (const Value& value : values) {
    if (value.consumers.empty() != (&value == &values[loss])) {
      return fail(ErrorCode::usage, fmt::format("{}: value '{}' must {}be used", graph_.name,
                                                value.name, value.consumers.empty() ? "" : "not "));
    }
  }
  graph_.loss = loss;
  graph_.classes = values[graph_.layers[values[loss].producer].inputs[0]].type.dims[0];
  return std::exchange(graph_, Graph{});
}

}  // namespace tidepool::nn
