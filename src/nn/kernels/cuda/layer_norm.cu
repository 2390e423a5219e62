// Layer norm: one warp a row; the gradients of scale and shift by columns, as sums of rows are.
// Sums are kept in double and added in one order.
#include "nn/kernels/cuda/grid.cuh"
#include "nn/kernels/cuda/launch.h"
#include "nn/kernels/cuda/row.cuh"

namespace tidepool::nn::device_code {
namespace {

constexpr unsigned kRowsAtATime = kThreads / 32;

__device__ double inverse_of(float variance, float epsilon) {
  return 1 / sqrt(static_cast<double>(variance) + epsilon);
}

__global__ void layer_norm_kernel(LayerNorm l, const float* x, const float* scale,
                                  const float* shift, float* y, float* mean, float* variance) {
  const auto width = static_cast<double>(l.width);
  for (std::int64_t row = first_row(); row < l.rows; row += row_step()) {
    const float* from = x + row * l.width;
    double sum = 0, squares = 0;
    for (std::int64_t c = row_lane(); c < l.width; c += 32) sum += from[c];
    const double middle = row_sum(sum) / width;
    for (std::int64_t c = row_lane(); c < l.width; c += 32) {
      const double centred = from[c] - middle;
      squares += centred * centred;
    }
    const double spread = row_sum(squares) / width;
    const double inverse = 1 / sqrt(spread + l.epsilon);
    for (std::int64_t c = row_lane(); c < l.width; c += 32) {
      y[row * l.width + c] = static_cast<float>((from[c] - middle) * inverse * scale[c] + shift[c]);
    }
    if (row_lane() == 0) {
      mean[row] = static_cast<float>(middle);
      variance[row] = static_cast<float>(spread);
    }
  }
}

__global__ void layer_norm_backward_kernel(LayerNorm l, const float* x, const float* dy,
                                           const float* mean, const float* variance,
                                           const float* scale, float* dx) {
  const auto width = static_cast<double>(l.width);
  for (std::int64_t row = first_row(); row < l.rows; row += row_step()) {
    const std::int64_t first = row * l.width;
    const double middle = mean[row], inverse = inverse_of(variance[row], l.epsilon);
    double sum = 0, product = 0;
    for (std::int64_t c = row_lane(); c < l.width; c += 32) {
      const double g = static_cast<double>(dy[first + c]) * scale[c];
      sum += g;
      product += g * ((x[first + c] - middle) * inverse);
    }
    sum = row_sum(sum) / width;
    product = row_sum(product) / width;
    for (std::int64_t c = row_lane(); c < l.width; c += 32) {
      const double g = static_cast<double>(dy[first + c]) * scale[c];
      const double normal = (x[first + c] - middle) * inverse;
      dx[first + c] = static_cast<float>(inverse * (g - sum - normal * product));
    }
  }
}

/// 32 columns a block, kRowsAtATime rows at a time.
__global__ void layer_norm_sums_kernel(LayerNorm l, const float* x, const float* dy,
                                       const float* mean, const float* variance, float* dscale,
                                       float* dshift) {
  __shared__ double sums[kRowsAtATime][32];
  __shared__ double products[kRowsAtATime][32];
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * 32 + threadIdx.x;
  double sum = 0, product = 0;
  if (column < l.width) {
    for (std::int64_t row = threadIdx.y; row < l.rows; row += kRowsAtATime) {
      const double d = dy[row * l.width + column];
      const double centred = static_cast<double>(x[row * l.width + column]) - mean[row];
      sum += d;
      product += d * (centred * inverse_of(variance[row], l.epsilon));
    }
  }
  sums[threadIdx.y][threadIdx.x] = sum;
  products[threadIdx.y][threadIdx.x] = product;
  __syncthreads();
  if (threadIdx.y != 0 || column >= l.width) return;
  for (unsigned i = 1; i < kRowsAtATime; ++i) {
    sum += sums[i][threadIdx.x];
    product += products[i][threadIdx.x];
  }
  dshift[column] = static_cast<float>(sum);
  dscale[column] = static_cast<float>(product);
}

}  // namespace

void layer_norm_forward(const LayerNorm& l, const float* x, const float* scale, const float* shift,
                        float* y, float* mean, float* variance, cudaStream_t stream) {
  layer_norm_kernel<<<blocks_for(l.rows * 32), kThreads, 0, stream>>>(l, x, scale, shift, y, mean,
                                                                      variance);
  TIDEPOOL_CUDA_CHECK(cudaGetLastError());
}

/// The sums come first: dx may be dy.
void layer_norm_backward(const LayerNorm& l, const float* x, const float* dy, const float* mean,
                         const float* variance, const float* scale, float* dx, float* dscale,
                         float* dshift, cudaStream_t stream) {
  const dim3 threads(32, kRowsAtATime);
  const auto blocks = static_cast<unsigned>((l.width + 31) / 32);
  layer_norm_sums_kernel<<<blocks, threads, 0, stream>>>(l, x, dy, mean, variance, dscale, dshift);
  TIDEPOOL_CUDA_CHECK(cudaGetLastError());
  layer_norm_backward_kernel<<<blocks_for(l.rows * 32), kThreads, 0, stream>>>(l, x, dy, mean,
                                                                               variance, scale, dx);
  TIDEPOOL_CUDA_CHECK(cudaGetLastError());
}

void load_layer_norm() {
  cudaFuncAttributes attributes{};
  TIDEPOOL_CUDA_CHECK(cudaFuncGetAttributes(&attributes, layer_norm_kernel));
}

}  // namespace tidepool::nn::device_code
