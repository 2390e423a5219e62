// VGG for ImageNet (Simonyan and Zisserman 2015): five stages of 3x3 convolutions with bias and
// ReLU, each ended by a 2x2 pool, then three fully connected layers with dropout between them. No
// batch norm.
#pragma once

#include <array>
#include <vector>

#include "nn/models/model.h"

namespace tidepool::nn {

/// Convolutions of each stage.
using VggStages = std::array<int, 5>;
inline constexpr VggStages kVgg16Stages{2, 2, 3, 3, 3};

/// All before the fully connected layers: an image a 32nd as large.
ValueId add_vgg_stages(GraphBuilder& b, const VggStages& stages, ValueId x);

std::vector<ModelInfo> standard_vgg_models();

}  // namespace tidepool::nn
