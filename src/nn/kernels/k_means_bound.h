// How far products in float may lead K-means astray: which centroids its kernels look at in double.
// Also for device code.
#pragma once

#include <cstdint>

namespace tidepool::nn {

/// A kernel ranks centroids by |c|^2 - 2 x.c in float: the squared distance without |x|^2. What it
/// gets is within this of the true number, whatever the order of the sums: a product of `width`
/// terms errs by no more than about width * 2^-24 * |x| |c| (Higham, Accuracy and Stability of
/// Numerical Algorithms, section 3.1); a few roundings more are in the 8. So the nearest centroid
/// is among those that are within twice this of the least.
constexpr double k_means_error(std::int64_t width, double point_norm, double largest_norm) {
  // Of lengths, not of their squares; 1.01 is for the terms of second order.
  const double products = 2 * point_norm * largest_norm + largest_norm * largest_norm;
  return 1.01 * static_cast<double>(width + 8) * 0x1p-24 * products;
}

}  // namespace tidepool::nn
