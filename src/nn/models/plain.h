// Plain networks: 3x3 convolutions with batch norm and ReLU and no shortcuts (the plain networks of
// He et al. 2016), in the form HOME is measured on: 20 convolutions of widths 64, 128 and 256. HOME
// does not say how many have each width: here 7, 7 and 6, where the first of a new width has stride
// 2 (maps of 32, 16 and 8). Global average pooling and one fully connected layer; any image size
// will do.
#pragma once

#include <vector>

#include "nn/models/model.h"

namespace tidepool::nn {

std::vector<ModelInfo> plain_models();

}  // namespace tidepool::nn
