// Figures of Chen, Chen, Han and Hu, "moDNN: Memory Optimal Deep Neural Network Training on
// Graphics Processing Units" (IEEE TPDS 30(3), 2019), section 7: what its text says; its plots have
// no numbers. Four NVIDIA K40. Averages over the networks are in modnn_notes.cpp.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/bytes.h"

namespace tidepool::reproduce {

struct PublishedModnn {
  std::string_view model;  ///< its name in the zoo
  std::int64_t batch = 0;
  /// Figure 9, where the text has it: bytes, else 0.
  double ideal = 0;
  double lower_bound = 0;
};

inline constexpr PublishedModnn kPublishedModnn[] = {
    {"vgg16-imagenet", 256}, {"vgg19-imagenet", 256}, {"vgg101-imagenet", 128, 100e9, 1.4e9},
    {"resnet34", 256},       {"resnet152", 256},      {"fcn32s", 128},
};

/// A K40's memory as it is sold; what a training has of it is the preset's.
inline constexpr Bytes kNominalMemory = 12'000'000'000;

}  // namespace tidepool::reproduce
