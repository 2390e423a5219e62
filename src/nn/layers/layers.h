// LayerSpec: the list of layers.
#pragma once

#include <type_traits>
#include <utility>
#include <variant>

#include "nn/layers/add.h"
#include "nn/layers/add_branch.h"
#include "nn/layers/attention.h"
#include "nn/layers/avg_pool.h"
#include "nn/layers/batch_norm.h"
#include "nn/layers/concat.h"
#include "nn/layers/conv2d.h"
#include "nn/layers/conv_transpose2d.h"
#include "nn/layers/dropout.h"
#include "nn/layers/embedding.h"
#include "nn/layers/flatten.h"
#include "nn/layers/gelu.h"
#include "nn/layers/global_avg_pool.h"
#include "nn/layers/input.h"
#include "nn/layers/layer_norm.h"
#include "nn/layers/linear.h"
#include "nn/layers/lstm.h"
#include "nn/layers/max_pool.h"
#include "nn/layers/mean_squared_error.h"
#include "nn/layers/relu.h"
#include "nn/layers/softmax_cross_entropy.h"
#include "nn/layers/tied_linear.h"
#include "nn/layers/upsample.h"

namespace tidepool::nn {

template <LayerKind... Layer>
using LayerList = std::variant<Layer...>;

using LayerVariant =
    LayerList<Input, Conv2d, BatchNorm, Relu, Gelu, MaxPool, AvgPool, GlobalAvgPool, Add, Concat,
              Dropout, Linear, Flatten, SoftmaxCrossEntropy, MeanSquaredError, Embedding, LayerNorm,
              Attention, TiedLinear, ConvTranspose2d, Upsample, AddBranch, Lstm>;

/// What copies and destroys it is compiled once, in layers.cpp.
struct LayerSpec : LayerVariant {
  LayerSpec();
  template <class Layer>
  requires(!std::is_base_of_v<LayerVariant, std::remove_cvref_t<Layer>>) LayerSpec(Layer layer)
      : LayerVariant(std::in_place_type<Layer>, std::move(layer)) {}  // NOLINT
  LayerSpec(const LayerSpec& other);
  LayerSpec(LayerSpec&& other) noexcept;
  LayerSpec& operator=(const LayerSpec& other);
  LayerSpec& operator=(LayerSpec&& other) noexcept;
  ~LayerSpec();
};

LayerTraits traits_of(const LayerSpec& spec);

}  // namespace tidepool::nn
