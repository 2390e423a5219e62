// Figures of Chen, Chen, Han and Hu, "moDNN: Memory Optimal Deep Neural Network Training on
// Graphics Processing Units" (IEEE TPDS 30(3), 2019), section 7: what its text says; its plots have
// no numbers. Four NVIDIA K40. They appear in results only as fields named published_*.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/bytes.h"

namespace tidepool::cli {

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

// Averages over the six networks.
inline constexpr double kPublishedBoundReduction = 59;  // figure 9
inline constexpr double kPublishedWeightsOutReduction = 396;
inline constexpr double kPublishedModnnSlowdown = 0.03;  // figure 10, 12 GB
inline constexpr double kPublishedVdnnSlowdown = 0.31;
inline constexpr double kPublishedTransferReduction = 378;  // figure 11
inline constexpr double kPublishedOverVdnnPlus = 1.26;      // figure 12
/// Single techniques: memory of the ideal over theirs, and time over the ideal's (figures 13, 14).
struct PublishedTechnique {
  std::string_view name;
  double memory = 1;
  double time = 1;
};
inline constexpr PublishedTechnique kPublishedSubBatch{"sub-batch", 42, 3.74};
inline constexpr PublishedTechnique kPublishedOffloading{"offloading", 4.1, 1.28};
inline constexpr PublishedTechnique kPublishedAlgorithms{"algorithms", 1 / 0.85, 2.7};

// Four cards over the ideal on one (figures 17 and 18), and over moDNN on one with as much memory
// as all four (figure 19).
inline constexpr double kPublishedFourOverlapped = 3.7;
inline constexpr double kPublishedFourNaive = 3.1;
inline constexpr double kPublishedFourSixGb = 3.4;
inline constexpr double kPublishedFourSixGbNaive = 2.9;
inline constexpr double kPublishedFourThreeGb = 3.1;
inline constexpr double kPublishedFourThreeGbNaive = 2.6;
inline constexpr double kPublishedFourThreeGbAllCores = 3.2;
inline constexpr double kPublishedSameMemory = 3.1;
inline constexpr double kPublishedSameMemoryAllCores = 3.3;

}  // namespace tidepool::cli
