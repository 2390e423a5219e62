// InceptionV3 (Szegedy et al. 2016), the network of the published weights (torchvision has the
// same) without the auxiliary classifier: a stem, three blocks A, one B, four C, one D and two E,
// global average pooling, dropout 0.5 and one fully connected layer. Convolutions have batch norm
// (epsilon 0.001) and ReLU. The 3x3 average pools leave their padding out of the mean. Images from
// 75x75 on.
#pragma once

#include <vector>

#include "nn/models/model.h"

namespace tidepool::nn {

std::vector<ModelInfo> inception_models();

}  // namespace tidepool::nn
