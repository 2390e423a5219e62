// U-Net (Ronneberger et al. 2015): a way down of pairs of 3x3 convolutions with ReLU and 2x2 pools,
// a way up of 2x2 transposed convolutions, each joined with the map of its size from the way down,
// and a 1x1 convolution to a score for each class and pixel. Dropout at the end of the way down.
//
// Convolutions are padded, so that maps of one size meet without cutting: the sides of images are
// multiples of two to the number of pools.
#pragma once

#include <vector>

#include "nn/models/model.h"

namespace tidepool::nn {

std::vector<ModelInfo> unet_models();

}  // namespace tidepool::nn
