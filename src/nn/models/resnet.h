// Residual networks for small images: a 3x3 stem without pooling, stages of blocks whose input is
// added to their output with no ReLU afterwards, average pooling and one fully connected layer.
// He et al. 2016 in the form of the SmartPool paper (Zhang et al. 2019): the deep ones have three
// 3x3 convolutions of equal width a block and no 1x1 bottleneck.
#pragma once

#include <vector>

#include "nn/models/model.h"

namespace tidepool::nn {

std::vector<ModelInfo> resnet_models();

}  // namespace tidepool::nn
