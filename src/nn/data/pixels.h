// Images kept as bytes, turned into normalised floats on request.
#pragma once

#include <cstdint>
#include <vector>

#include "nn/image_shape.h"

namespace tidepool::nn {

/// value = (byte / 255 - mean) / deviation of its channel.
struct Normalisation {
  std::vector<float> mean;
  std::vector<float> deviation;
};

/// For each channel and byte the float it stands for: 256 entries per channel.
inline std::vector<float> normalisation_table(const Normalisation& normalisation) {
  std::vector<float> table;
  for (std::size_t c = 0; c < normalisation.mean.size(); ++c) {
    for (int byte = 0; byte < 256; ++byte) {
      table.push_back((static_cast<float>(byte) / 255.0F - normalisation.mean[c]) /
                      normalisation.deviation[c]);
    }
  }
  return table;
}

}  // namespace tidepool::nn
