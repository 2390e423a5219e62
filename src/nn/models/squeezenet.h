// SqueezeNet 1.1 (Iandola et al. 2016, and the authors' release 1.1) for small images: fire
// modules, in which a 1x1 convolution squeezes the channels and a 1x1 and a 3x3 one expand them
// side by side. Convolutions have a bias and no batch norm. The stem has stride 1, and the three
// pools (3x3, stride 2) have padding 1 where the release rounds sizes up: maps of 32, 16, 8 and 4.
// The last convolution makes the classes and global average pooling the logits. Any image size will
// do.
#pragma once

#include <vector>

#include "nn/models/model.h"

namespace tidepool::nn {

std::vector<ModelInfo> squeezenet_models();

}  // namespace tidepool::nn
