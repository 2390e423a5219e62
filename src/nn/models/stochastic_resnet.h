// Residual networks for small images with stochastic depth (Huang et al. 2016, "Deep Networks with
// Stochastic Depth", section 3): 6n + 2 layers, a 3x3 stem of 16 channels and three stages of n
// blocks with 16, 32 and 64 channels; a block is ReLU(x + branch(x)), the branch two 3x3
// convolutions with batch norm and a ReLU between them. An iteration runs branch l of L with
// probability 1 - l/(2L). The shortcut always runs.
//
// Two things differ from the paper. Where the shape changes a 1x1 convolution with batch norm
// projects x, as in the other ResNets here (the paper pools and pads with zeros). Its network of
// 110 layers has 54 branches, a program up to 32 guards, so the deepest has 62 layers and 30
// branches.
#pragma once

#include <vector>

#include "nn/models/model.h"

namespace tidepool::nn {

std::vector<ModelInfo> stochastic_resnet_models();

}  // namespace tidepool::nn
