// Residual networks as He et al. 2016 have them, with a ReLU after each addition, global average
// pooling and one fully connected layer. A 1x1 convolution with batch norm projects what is added
// where the shape changes.
//
// For ImageNet: a 7x7 stem with stride 2 and a 3x3 max pool with stride 2, four stages with strides
// 1, 2, 2 and 2. The deep ones have bottlenecks (1x1, 3x3, 1x1 with four times the width), with the
// stride in the 3x3 convolution (as torchvision has it; the paper has it in the first 1x1).
// For small images, the one HOME is measured on: a 3x3 stem without pool. Any image size will do.
//
// Those of the SmartPool paper, which differ, are in resnet.h.
#pragma once

#include <vector>

#include "nn/models/model.h"

namespace tidepool::nn {

std::vector<ModelInfo> standard_resnet_models();

}  // namespace tidepool::nn
