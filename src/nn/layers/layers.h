// LayerSpec: the list of layers.
#pragma once

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

using LayerSpec =
    LayerList<Input, Conv2d, BatchNorm, Relu, Gelu, MaxPool, AvgPool, GlobalAvgPool, Add, Concat,
              Dropout, Linear, Flatten, SoftmaxCrossEntropy, MeanSquaredError, Embedding, LayerNorm,
              Attention, TiedLinear, ConvTranspose2d, Upsample, AddBranch, Lstm>;

inline LayerTraits traits_of(const LayerSpec& spec) {
  return std::visit([](const auto& layer) { return layer.traits; }, spec);
}

}  // namespace tidepool::nn
