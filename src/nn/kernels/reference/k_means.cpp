#include "nn/kernels/reference/reference.h"
#include "nn/kernels/reference/tensor_view.h"

namespace tidepool::nn::reference {

void run(const KMeansAssign& /*op*/, const OpDesc& desc, Pointers pointers) {
  const auto points = read<float>(desc, pointers, 0);
  const auto centroids = read<float>(desc, pointers, 1);
  const auto nearest = write<std::int32_t>(desc, pointers, 2);
  const auto distances = write<float>(desc, pointers, 3);
  for (std::int64_t n = 0; n < points.dim(0); ++n) {
    double least = 0;
    for (std::int64_t k = 0; k < centroids.dim(0); ++k) {
      double distance = 0;
      for (std::int64_t i = 0; i < points.dim(1); ++i) {
        const double d = static_cast<double>(points(n, i)) - static_cast<double>(centroids(k, i));
        distance += d * d;
      }
      if (k > 0 && !(distance < least)) continue;
      least = distance;
      nearest(n) = static_cast<std::int32_t>(k);
    }
    distances(n) = static_cast<float>(least);
  }
}

void run(const KMeansAccumulate& /*op*/, const OpDesc& desc, Pointers pointers) {
  const auto points = read<float>(desc, pointers, 0);
  const auto nearest = read<std::int32_t>(desc, pointers, 1);
  const auto distances = read<float>(desc, pointers, 2);
  const bool adds = desc.in_place;
  const auto sums = adds ? update<float>(desc, pointers, 3) : write<float>(desc, pointers, 3);
  const auto counts =
      adds ? update<std::int32_t>(desc, pointers, 4) : write<std::int32_t>(desc, pointers, 4);
  const auto inertia = adds ? update<float>(desc, pointers, 5) : write<float>(desc, pointers, 5);
  const auto assignments = write<std::int32_t>(desc, pointers, 6);
  double total = 0;
  for (std::int64_t n = 0; n < points.dim(0); ++n) {
    const std::int32_t k = nearest(n);
    assignments(n) = k;
    total += static_cast<double>(distances(n));
    if (k < 0 || k >= sums.dim(0)) continue;
    ++counts(k);
    for (std::int64_t i = 0; i < points.dim(1); ++i) sums(k, i) += points(n, i);
  }
  inertia(0) += static_cast<float>(total);
}

void run(const KMeansUpdate& /*op*/, const OpDesc& desc, Pointers pointers) {
  const auto sums = read<float>(desc, pointers, 0);
  const auto counts = read<std::int32_t>(desc, pointers, 1);
  const auto centroids = update<float>(desc, pointers, 2);
  for (std::int64_t k = 0; k < centroids.dim(0); ++k) {
    if (counts(k) <= 0) continue;
    const auto count = static_cast<float>(counts(k));
    for (std::int64_t i = 0; i < centroids.dim(1); ++i) centroids(k, i) = sums(k, i) / count;
  }
}

}  // namespace tidepool::nn::reference
