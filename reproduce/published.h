// Figures of Zhang, Yeung, Shu, He and Wang, "Efficient Memory Management for GPU-based Deep
// Learning Systems" (arXiv:1903.06631): GTX 1080 Ti, CIFAR-10, batch 100. They appear in results
// only as fields named published_*.
#pragma once

#include <span>
#include <string_view>

namespace tidepool::reproduce {

struct PublishedNetwork {
  std::string_view model;  ///< its name in the zoo
  double peak_mib = 0;     ///< table I (the paper's MB are MiB), as are the next five
  double cnmem_ratio = 0;
  double smartpool_ratio = 0;
  double native_ms = 0;  ///< an iteration with cudaMalloc
  double cnmem_speedup = 0;
  double smartpool_speedup = 0;
  double reduction = 0;  ///< table II, share of the peak load that goes without overhead
};

inline constexpr PublishedNetwork kPublishedNetworks[] = {
    {"vgg11", 389, 1.169, 1.013, 76, 1.77, 1.75, 0.270},
    {"vgg13", 509, 1.115, 1.016, 94, 1.72, 1.71, 0.293},
    {"vgg16", 647, 1.113, 1.012, 122, 1.72, 1.73, 0.309},
    {"vgg19", 785, 1.072, 1.011, 162, 1.91, 1.94, 0.285},
    {"resnet18-cifar", 1452, 1.033, 1.003, 359, 1.84, 1.83, 0.207},
    {"resnet34-cifar", 2824, 1.028, 1.001, 684, 1.86, 1.85, 0.248},
    {"resnet50-cifar", 4418, 1.030, 1.003, 993, 1.84, 1.88, 0.342},
    {"resnet101-cifar", 8367, 1.028, 1.0005, 2086, 1.99, 1.97, 0.324},
};

/// Figure 10 and section VI-C1: less footprint than CnMem, at less than this overhead.
inline constexpr double kPublishedCombinedReduction = 0.60;
inline constexpr double kPublishedCombinedOverhead = 0.15;

}  // namespace tidepool::reproduce
