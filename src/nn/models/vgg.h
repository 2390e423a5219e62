// VGG for small images: stages of conv3x3 - batch norm - ReLU, each ended by a 2x2 pool, then two
// fully connected layers. Simonyan and Zisserman 2015, in the CIFAR form with batch norm and
// dropout (cifar.torch). The plain ones are the same, dropout included, with a bias in each
// convolution in the place of batch norm: sub-batches train as the whole batch does.
#pragma once

#include <vector>

#include "nn/models/model.h"

namespace tidepool::nn {

std::vector<ModelInfo> vgg_models();

}  // namespace tidepool::nn
