// K-means. A warp finds the nearest centroid of a point: by products in float where they rank the
// centroids clearly, by distances in double where they may not. Each element of a sum belongs to
// one thread, which adds in the order of the points.
#include <cfloat>

#include "nn/kernels/cuda/grid.cuh"
#include "nn/kernels/cuda/launch.h"
#include "nn/kernels/cuda/row.cuh"
#include "nn/kernels/k_means_bound.h"

namespace tidepool::nn::device_code {
namespace {

__device__ double squared_length(const float* row, std::int64_t width) {
  double sum = 0;
  for (std::int64_t i = row_lane(); i < width; i += 32) {
    sum += static_cast<double>(row[i]) * row[i];
  }
  return row_sum(sum);
}

__device__ double squared_distance(const float* a, const float* b, std::int64_t width) {
  double sum = 0;
  for (std::int64_t i = row_lane(); i < width; i += 32) {
    const double d = static_cast<double>(a[i]) - b[i];
    sum += d * d;
  }
  return row_sum(sum);
}

/// A warp a centroid.
__global__ void k_means_norms_kernel(KMeans m, const float* centroids, float* norms) {
  for (std::int64_t k = first_row(); k < m.clusters; k += row_step()) {
    const double norm = squared_length(centroids + k * m.width, m.width);
    if (row_lane() == 0) norms[k] = static_cast<float>(norm);
  }
}

/// A warp a point. Where not all ranks are finite, all centroids are looked at.
__global__ void k_means_nearest_kernel(KMeans m, const float* points, const float* centroids,
                                       const float* products, const float* norms,
                                       std::int32_t* nearest, float* distances) {
  for (std::int64_t n = first_row(); n < m.points; n += row_step()) {
    const float* point = points + n * m.width;
    const float* product = products + n * m.clusters;
    float most = -FLT_MAX, largest = 0;  // the least rank is the largest of negated ones
    bool sound = true;
    for (std::int64_t k = row_lane(); k < m.clusters; k += 32) {
      const float negated = 2 * product[k] - norms[k];
      sound = sound && negated >= -FLT_MAX && negated <= FLT_MAX;
      most = fmaxf(most, negated);
      largest = fmaxf(largest, norms[k]);
    }
    sound = __all_sync(kWholeWarp, sound) != 0;
    const double length = sqrt(squared_length(point, m.width));
    const double error =
        k_means_error(m.width, length, sqrt(static_cast<double>(row_max(largest))));
    const double limit = 2 * error - static_cast<double>(row_max(most));
    std::int64_t best = -1;
    double least = 0;
    for (std::int64_t first = 0; first < m.clusters; first += 32) {
      const std::int64_t own = first + row_lane();
      const bool is_far = own >= m.clusters ||
                          (sound && static_cast<double>(norms[own] - 2 * product[own]) > limit);
      if (__all_sync(kWholeWarp, is_far) != 0) continue;
      for (std::int64_t k = first; k < m.clusters && k < first + 32; ++k) {
        if (sound && static_cast<double>(norms[k] - 2 * product[k]) > limit) continue;
        const double d = squared_distance(point, centroids + k * m.width, m.width);
        if (best >= 0 && !(d < least)) continue;
        best = k;
        least = d;
      }
    }
    if (row_lane() == 0) {
      nearest[n] = best < 0 ? 0 : static_cast<std::int32_t>(best);
      distances[n] = static_cast<float>(least);
    }
  }
}

/// Block (k, i): columns i*kThreads... of the sum of centroid k.
__global__ void k_means_sums_kernel(KMeans m, bool adds, const float* points,
                                    const std::int32_t* nearest, float* sums,
                                    std::int32_t* counts) {
  __shared__ int chunk[kThreads];
  const int cluster = static_cast<int>(blockIdx.x);
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.y) * kThreads + threadIdx.x;
  const std::int64_t at = cluster * m.width + column;
  float sum = adds && column < m.width ? sums[at] : 0.0F;
  int count = 0;
  for (std::int64_t begin = 0; begin < m.points; begin += kThreads) {
    const std::int64_t own = begin + threadIdx.x;
    chunk[threadIdx.x] = own < m.points ? nearest[own] : -1;
    __syncthreads();
    for (int k = 0; k < kThreads; ++k) {
      if (chunk[k] != cluster) continue;
      ++count;
      if (column < m.width) sum += points[(begin + k) * m.width + column];
    }
    __syncthreads();
  }
  if (column < m.width) sums[at] = sum;
  if (column == 0) counts[cluster] = adds ? counts[cluster] + count : count;
}

/// One block.
__global__ void k_means_inertia_kernel(std::int64_t points, bool adds, const float* distances,
                                       const std::int32_t* nearest, float* inertia,
                                       std::int32_t* assignments) {
  __shared__ double parts[kThreads];
  double sum = 0;
  for (std::int64_t n = threadIdx.x; n < points; n += kThreads) {
    sum += distances[n];
    assignments[n] = nearest[n];
  }
  parts[threadIdx.x] = sum;
  __syncthreads();
  for (unsigned half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) parts[threadIdx.x] += parts[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    const auto total = static_cast<float>(parts[0]);
    *inertia = adds ? *inertia + total : total;
  }
}

__global__ void k_means_update_kernel(KMeans m, const float* sums, const std::int32_t* counts,
                                      float* centroids) {
  for (std::int64_t i = first_index(); i < m.clusters * m.width; i += index_step()) {
    const std::int32_t count = counts[i / m.width];
    if (count > 0) centroids[i] = sums[i] / static_cast<float>(count);
  }
}

}  // namespace

void k_means_norms(const KMeans& shape, const float* centroids, float* norms, cudaStream_t stream) {
  k_means_norms_kernel<<<blocks_for(shape.clusters * 32), kThreads, 0, stream>>>(shape, centroids,
                                                                                 norms);
  TIDEPOOL_CUDA_CHECK(cudaGetLastError());
}

void k_means_nearest(const KMeans& shape, const float* points, const float* centroids,
                     const float* products, const float* norms, std::int32_t* nearest,
                     float* distances, cudaStream_t stream) {
  k_means_nearest_kernel<<<blocks_for(shape.points * 32), kThreads, 0, stream>>>(
      shape, points, centroids, products, norms, nearest, distances);
  TIDEPOOL_CUDA_CHECK(cudaGetLastError());
}

void k_means_sums(const KMeans& shape, bool adds, const float* points, const std::int32_t* nearest,
                  float* sums, std::int32_t* counts, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>(shape.clusters),
                  static_cast<unsigned>((shape.width + kThreads - 1) / kThreads), 1);
  k_means_sums_kernel<<<grid, kThreads, 0, stream>>>(shape, adds, points, nearest, sums, counts);
  TIDEPOOL_CUDA_CHECK(cudaGetLastError());
}

void k_means_inertia(std::int64_t points, bool adds, const float* distances,
                     const std::int32_t* nearest, float* inertia, std::int32_t* assignments,
                     cudaStream_t stream) {
  k_means_inertia_kernel<<<1, kThreads, 0, stream>>>(points, adds, distances, nearest, inertia,
                                                     assignments);
  TIDEPOOL_CUDA_CHECK(cudaGetLastError());
}

void k_means_update(const KMeans& shape, const float* sums, const std::int32_t* counts,
                    float* centroids, cudaStream_t stream) {
  k_means_update_kernel<<<blocks_for(shape.clusters * shape.width), kThreads, 0, stream>>>(
      shape, sums, counts, centroids);
  TIDEPOOL_CUDA_CHECK(cudaGetLastError());
}

void load_k_means() {
  cudaFuncAttributes attributes{};
  TIDEPOOL_CUDA_CHECK(cudaFuncGetAttributes(&attributes, k_means_update_kernel));
}

}  // namespace tidepool::nn::device_code
