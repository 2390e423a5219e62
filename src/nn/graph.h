// Graph: the forward pass of a model as layers over values, without a batch size, layouts or
// memory. A new kind of layer is one struct here, one shape rule in graph.cpp, one case in
// forward.cpp and one in autodiff.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "nn/image_shape.h"
#include "nn/op_desc.h"

namespace tidepool::nn {

using ValueId = std::int32_t;
using LayerId = std::int32_t;

/// Data from outside: the images, or one class index per sample.
struct Input {
  enum class Role : std::uint8_t { images, labels } role = Role::images;
  ImageShape image;  ///< of images
};

/// Square window, no bias.
struct Conv2d {
  std::int64_t channels = 0;
  std::int64_t window = 3;
  std::int64_t stride = 1;
  std::int64_t padding = 1;
};

/// Over channels, with the statistics of the batch; learnable scale and shift.
struct BatchNorm {
  float epsilon = 1e-5F;
  float statistics_momentum = 0.1F;
};

struct Relu {};

struct MaxPool {
  std::int64_t window = 2;
  std::int64_t stride = 2;
  std::int64_t padding = 0;
};

/// Square window, no padding: every mean is over whole windows.
struct AvgPool {
  std::int64_t window = 2;
  std::int64_t stride = 2;
};

/// The sum of two values of the same shape.
struct Add {};

struct Dropout {
  float rate = 0.5F;  ///< probability of a zero, in [0, 1)
};

/// Fully connected, with bias.
struct Linear {
  std::int64_t features = 0;
};

/// {C, H, W} as {C*H*W}.
struct Flatten {};

/// Inputs: logits, labels. Output: the mean over the batch.
struct SoftmaxCrossEntropy {};

using LayerSpec = std::variant<Input, Conv2d, BatchNorm, Relu, MaxPool, AvgPool, Add, Dropout,
                               Linear, Flatten, SoftmaxCrossEntropy>;

/// Shape of one sample of a value, {C, H, W} or {C}, or {} for one number; and its element type.
struct ValueType {
  std::vector<std::int64_t> dims;
  ElementType type = ElementType::f32;
  friend bool operator==(const ValueType&, const ValueType&) = default;

  [[nodiscard]] std::int64_t elements() const;
};

/// For people: "64x32x32", "512", "scalar".
std::string to_string(const ValueType& type);

/// Type of the output of a layer, or why the inputs do not fit it. The message does not name the
/// layer.
Result<ValueType> infer_type(const LayerSpec& spec, const std::vector<ValueType>& inputs);

struct Layer {
  std::string name;  ///< unique in its graph
  LayerSpec spec;
  std::vector<ValueId> inputs;
  ValueId output = -1;
};

struct Value {
  std::string name;  ///< the layer's name plus ".out"; of inputs and the loss just the name
  ValueType type;
  LayerId producer = -1;
  std::vector<LayerId> consumers;
};

/// Layers in an order in which every input precedes its use.
struct Graph {
  std::string name;
  std::vector<Layer> layers;
  std::vector<Value> values;
  ValueId images = -1;
  ValueId labels = -1;
  ValueId loss = -1;
  ImageShape image;
  std::int64_t classes = 0;
};

/// Builds a graph call by call. The first error is kept and makes later calls do nothing, so that
/// models are written without checks between layers; `finish` reports it.
class GraphBuilder {
 public:
  explicit GraphBuilder(std::string name);

  ValueId images(const ImageShape& image);
  ValueId labels();
  ValueId add(std::string_view name, const LayerSpec& spec, const std::vector<ValueId>& inputs);
  /// The graph that trains on `loss`, or the first error. The builder is empty afterwards.
  Result<Graph> finish(ValueId loss);

 private:
  ValueId reject(std::string_view layer, const std::string& why);

  Graph graph_;
  std::optional<Error> error_;
};

}  // namespace tidepool::nn
