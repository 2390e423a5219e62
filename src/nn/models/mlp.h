// Fully connected networks on flattened images.
#pragma once

#include <vector>

#include "nn/models/model.h"

namespace tidepool::nn {

std::vector<ModelInfo> mlp_models();

}  // namespace tidepool::nn
