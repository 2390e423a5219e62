// MobileNetV1 (Howard et al. 2017) for small images: each 3x3 convolution is a depthwise one and a
// 1x1 one, both with batch norm and ReLU. All is as in the paper but for the stride of the stem,
// which is 1 in the usual form for 32x32 images (maps of 32, 16, 8, 4 and 2). Global average
// pooling and one fully connected layer; any image size will do.
#pragma once

#include <vector>

#include "nn/models/model.h"

namespace tidepool::nn {

std::vector<ModelInfo> mobilenet_models();

}  // namespace tidepool::nn
