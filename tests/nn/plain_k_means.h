// Lloyd's algorithm once more, by plain loops over the points as the seed orders them: what the
// tests of K-means compare with.
#pragma once

#include <cstdint>
#include <vector>

#include "nn/data/sample_source.h"
#include "nn/data/sampler.h"

namespace tidepool::nn::testing {

struct PlainKMeans {
  std::int64_t clusters = 0, width = 0;
  std::vector<float> points;     ///< rows of `width`
  std::vector<float> centroids;  ///< rows, too
  std::vector<std::int32_t> assignments;
  double inertia = 0;

  /// Of the first `count` samples in the seed's order; their first field is the images.
  PlainKMeans(const SampleSource& data, std::int64_t count, std::int64_t clusters_in,
              std::uint64_t seed = 1)
      : clusters(clusters_in), width(data.fields()[0].type.elements()) {
    std::vector<std::int64_t> samples(static_cast<std::size_t>(count));
    Sampler(data.size(), count, seed).samples(0, 0, samples);
    points.resize(static_cast<std::size_t>(count * width));
    for (std::int64_t n = 0; n < count; ++n) {
      data.read(0, samples[static_cast<std::size_t>(n)],
                reinterpret_cast<std::byte*>(points.data() + n * width));
    }
    for (std::int64_t k = 0; k < clusters; ++k) {
      const float* row = points.data() + k % count * width;
      centroids.insert(centroids.end(), row, row + width);
    }
    assignments.resize(static_cast<std::size_t>(count));
  }

  void iterate() {
    std::vector<float> sums(centroids.size());
    std::vector<std::int32_t> counts(static_cast<std::size_t>(clusters));
    inertia = 0;
    for (std::size_t n = 0; n < assignments.size(); ++n) {
      const float* point = points.data() + n * static_cast<std::size_t>(width);
      const std::int32_t k = nearest_to(point);
      assignments[n] = k;
      ++counts[static_cast<std::size_t>(k)];
      for (std::int64_t i = 0; i < width; ++i) {
        sums[static_cast<std::size_t>(k * width + i)] += point[i];
      }
    }
    for (std::size_t i = 0; i < sums.size(); ++i) {
      const std::int32_t count = counts[i / static_cast<std::size_t>(width)];
      if (count > 0) centroids[i] = sums[i] / static_cast<float>(count);
    }
  }

 private:
  std::int32_t nearest_to(const float* point) {
    std::int32_t best = 0;
    double least = 0;
    for (std::int32_t k = 0; k < clusters; ++k) {
      double distance = 0;
      for (std::int64_t i = 0; i < width; ++i) {
        const double d = static_cast<double>(point[i]) -
                         static_cast<double>(centroids[static_cast<std::size_t>(k * width + i)]);
        distance += d * d;
      }
      if (k > 0 && distance >= least) continue;
      best = k;
      least = distance;
    }
    inertia += least;
    return best;
  }
};

}  // namespace tidepool::nn::testing
