// K-means over images as vectors: a model without layers, whose program is that of nn/k_means.h.
// 1024 clusters are those of the measurements of src-d/kmcuda, the K-means of the Q-network
// planner's paper; its points are Fashion-MNIST's.
#pragma once

#include <vector>

#include "nn/models/model.h"

namespace tidepool::nn {

std::vector<ModelInfo> k_means_models();

}  // namespace tidepool::nn
