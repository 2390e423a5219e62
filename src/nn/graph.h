// Graph: the forward pass of a model as layers over values, without a batch size, layouts or
// memory. The kinds of layer are in nn/layers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/id.h"
#include "base/result.h"
#include "nn/image_shape.h"
#include "nn/layers/layers.h"

namespace tidepool::nn {

using ValueId = Id<struct ValueTag>;
using LayerId = Id<struct LayerTag>;

/// Type of the output of a layer, or why the inputs do not fit it. The message does not name the
/// layer.
Result<ValueType> infer_type(const LayerSpec& spec, const std::vector<ValueType>& inputs);

struct Layer {
  std::string name;  ///< unique in its graph
  LayerSpec spec;
  std::vector<ValueId> inputs;
  ValueId output = -1;
  std::int32_t guard = kNone;  ///< index into Graph::survival of the branch it is in, or kNone
};

struct Value {
  std::string name;  ///< the layer's name plus ".out"; of inputs and the loss just the name
  ValueType type;
  LayerId producer = -1;
  std::vector<LayerId> consumers;
};

// Note [Branches]. The layers between `begin_branch` and `end_branch` are one branch: a training
// iteration runs all of it, forwards, backwards and the updates of its weights and statistics, or
// skips all of it. Its result goes to one AddBranch, which adds it to a carried value or leaves
// that alone. What is skipped keeps its weights, their optimizer state and its running statistics.
// Evaluation runs every branch and scales what it adds by how often it was trained. In programs a
// branch is a guard (Note [Guards] in ir/program.h): forwards, AddBranch is an update of the
// carried value by a guarded op; backwards, what a branch adds to the gradient of a value outside
// is too.

/// Layers in an order in which every input precedes its use.
struct Graph {
  std::string name;
  std::vector<Layer> layers;
  std::vector<Value> values;
  std::vector<double> survival;  ///< of each branch: the probability that an iteration runs it
  ValueId loss = -1;
  // What classifiers of images have, and others not.
  ValueId images = -1;  ///< the input of GraphBuilder::images
  ValueId labels = -1;  ///< what the loss compares with
  ImageShape image;     ///< of `images`
  std::int64_t classes = 0;
  std::int64_t answers = 1;  ///< labels of a sample that count, see SoftmaxCrossEntropy
  /// Above 0: there are no layers and no values, but K-means of `image` as vectors, see
  /// nn/k_means.h.
  std::int64_t clusters = 0;

  [[nodiscard]] LayerTraits traits(LayerId layer) const { return traits_of(layers[layer].spec); }
};

/// Builds a graph call by call. The first error is kept and makes later calls do nothing, so that
/// models are written without checks between layers; `finish` reports it.
class GraphBuilder {
 public:
  explicit GraphBuilder(std::string name);

  /// Data of any shape and type under a name of its own, by which a SampleSource knows it.
  ValueId input(std::string_view name, const ValueType& type);
  /// The input "images" of floats.
  ValueId images(const ImageShape& image);
  /// The input "labels": one class index per sample.
  ValueId labels();
  /// The input "labels": one class index for each pixel.
  ValueId pixel_labels(const ImageShape& image);
  /// The input "tokens" of a model of text, and "labels": one class index for each of them.
  ValueId tokens(std::int64_t sequence);
  ValueId token_labels(std::int64_t sequence);
  ValueId add(std::string_view name, const LayerSpec& spec, const std::vector<ValueId>& inputs);
  /// What is added until `end_branch` is a branch that an iteration runs with this probability; see
  /// Note [Branches]. They do not nest.
  void begin_branch(double survival);
  void end_branch();
  /// The graph that trains on `loss`, or the first error. The builder is empty afterwards.
  Result<Graph> finish(ValueId loss);

 private:
  ValueId reject(std::string_view layer, const std::string& why);
  /// Why a layer may not share the weight of another, or nothing.
  [[nodiscard]] std::string tie_error(const TiedLinear& spec, const ValueType& input) const;
  /// Why a layer may not read these values where it is, see Note [Branches], or nothing.
  [[nodiscard]] std::string branch_error(const LayerSpec& spec,
                                         const std::vector<ValueId>& inputs) const;
  /// Why a value may not have the readers it has, or nothing.
  [[nodiscard]] std::string readers_error(const Value& value) const;

  Graph graph_;
  std::int32_t guard_ = kNone;  ///< of the branch that is open
  std::optional<Error> error_;
};

}  // namespace tidepool::nn
