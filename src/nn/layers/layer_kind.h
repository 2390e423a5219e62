// What every kind of layer has: a struct whose fields are what a model says of one layer, and
//
//   static constexpr LayerTraits traits{...};
//   Result<ValueType> infer(InputTypes inputs) const;   shape rule, or why the inputs do not fit
//   void forward(const ForwardPass& f) const;           writes the parameters and forward ops
//   void backward(const BackwardPass& b) const;         writes the backward ops and updates
//
// A layer is one header and source in this folder; LayerSpec in layers.h is the list. What a layer
// writes its ops with is in nn/passes.h.
#pragma once

#include <concepts>
#include <span>

#include "base/result.h"
#include "nn/value_type.h"

namespace tidepool::nn {

struct ForwardPass;
struct BackwardPass;

using InputTypes = std::span<const ValueType>;

enum class LayerRole : std::uint8_t {
  input,   ///< data from outside; others must leave its bytes alone
  hidden,  ///< its value is called after the layer, with ".out"
  loss,    ///< makes the one number that is trained on
};

struct LayerTraits {
  LayerRole role = LayerRole::hidden;
  bool has_weights = false;       ///< its parameters want gradients
  bool batch_statistics = false;  ///< the result for a sample depends on the others of its round
  /// The backward pass looks for where the output is positive; see Note [In-place chains].
  bool reads_sign_of_output = false;
  bool reads_output = false;  ///< the backward pass reads the output: nothing may overwrite it
  /// Of a loss: its inputs are logits and labels, so that right answers can be counted and samples
  /// left out by a negative label.
  bool classifies = false;
};

template <class Layer>
concept LayerKind = std::equality_comparable<Layer> &&
    requires(const Layer& layer, InputTypes inputs, const ForwardPass& forward,
             const BackwardPass& backward) {
  { Layer::traits } -> std::convertible_to<LayerTraits>;
  { layer.infer(inputs) } -> std::same_as<Result<ValueType>>;
  layer.forward(forward);
  layer.backward(backward);
};

}  // namespace tidepool::nn
