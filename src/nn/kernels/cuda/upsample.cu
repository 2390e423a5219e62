// Upsampling of images by a whole factor, and its gradient.
#include "nn/kernels/cuda/grid.cuh"
#include "nn/kernels/cuda/launch.h"
#include "nn/ops/upsample.h"

namespace tidepool::nn::device_code {
namespace {

__host__ __device__ UpsampleAttributes attributes_of(const Upsampling& u) {
  return {u.factor, u.bilinear};
}

/// One thread an output.
__global__ void upsample_forward_kernel(Upsampling u, const float* x, float* y) {
  const std::int64_t width = u.width * u.factor, plane = u.height * u.factor * width;
  for (std::int64_t i = first_index(); i < u.planes * plane; i += index_step()) {
    const UpsampleSource row = upsample_source(attributes_of(u), u.height, i % plane / width);
    const UpsampleSource column = upsample_source(attributes_of(u), u.width, i % width);
    const float* from = x + i / plane * u.height * u.width;
    const float* above = from + row.first * u.width;
    const float* below = from + row.second * u.width;
    const float in_first =
        (1 - column.of_second) * above[column.first] + column.of_second * above[column.second];
    const float in_second =
        (1 - column.of_second) * below[column.first] + column.of_second * below[column.second];
    y[i] = (1 - row.of_second) * in_first + row.of_second * in_second;
  }
}

/// One thread an input: it adds up what it is part of.
__global__ void upsample_backward_kernel(Upsampling u, const float* dy, float* dx) {
  const UpsampleAttributes op = attributes_of(u);
  const std::int64_t width = u.width * u.factor, plane = u.height * u.factor * width;
  for (std::int64_t i = first_index(); i < u.planes * u.height * u.width; i += index_step()) {
    const std::int64_t h = i / u.width % u.height, w = i % u.width;
    const float* from = dy + i / (u.height * u.width) * plane;
    const std::int64_t last_row = upsample_end(op, u.height, h);
    const std::int64_t last_column = upsample_end(op, u.width, w);
    double sum = 0;
    for (std::int64_t row = upsample_begin(op, h); row < last_row; ++row) {
      const float of_row = upsample_source(op, u.height, row).weight_of(h);
      for (std::int64_t column = upsample_begin(op, w); column < last_column; ++column) {
        const float of_column = upsample_source(op, u.width, column).weight_of(w);
        sum += static_cast<double>(of_row * of_column) * from[row * width + column];
      }
    }
    dx[i] = static_cast<float>(sum);
  }
}

}  // namespace

void upsample_forward(const Upsampling& u, const float* x, float* y, cudaStream_t stream) {
  const std::int64_t count = u.planes * u.height * u.width * u.factor * u.factor;
  upsample_forward_kernel<<<blocks_for(count), kThreads, 0, stream>>>(u, x, y);
  TIDEPOOL_CUDA_CHECK(cudaGetLastError());
}

void upsample_backward(const Upsampling& u, const float* dy, float* dx, cudaStream_t stream) {
  const std::int64_t count = u.planes * u.height * u.width;
  upsample_backward_kernel<<<blocks_for(count), kThreads, 0, stream>>>(u, dy, dx);
  TIDEPOOL_CUDA_CHECK(cudaGetLastError());
}

void load_upsample() {
  cudaFuncAttributes attributes{};
  TIDEPOOL_CUDA_CHECK(cudaFuncGetAttributes(&attributes, upsample_forward_kernel));
}

}  // namespace tidepool::nn::device_code
