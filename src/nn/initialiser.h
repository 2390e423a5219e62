// Initialiser: what a parameter starts as.
#pragma once

#include <cstdint>

namespace tidepool::nn {

enum class Initialiser : std::uint8_t {
  zero,
  one,
  he_normal,     ///< normal, of variance 2 / fan_in
  bilinear,      ///< of a transposed convolution: upsampling of each channel by itself
  small_normal,  ///< normal, of deviation 0.02, as BERT and GPT-2 have it
};

}  // namespace tidepool::nn
