// FCN-32s (Long et al. 2015): VGG-16 with its fully connected layers as convolutions, a score for
// each class, and a transposed convolution back to the size of the image; a class for each pixel.
//
// The paper pads the image by 100 and cuts the result to its size. Here the 7x7 convolution is
// padded by 3 instead, which makes the same of an image of 224x224: maps of 7x7, and 32 times that.
// Images have sides that are multiples of 32. As in the paper the scores start as zeros and the
// transposed convolution as bilinear upsampling; here that is trained, too.
#pragma once

#include <vector>

#include "nn/models/model.h"

namespace tidepool::nn {

std::vector<ModelInfo> fcn_models();

}  // namespace tidepool::nn
