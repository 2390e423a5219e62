// Max pooling. cuDNN's keeps no index: its backward pass needs x and y, which this project's does
// not keep.
#include <cfloat>

#include "nn/kernels/cuda/grid.cuh"
#include "nn/kernels/cuda/launch.h"

namespace tidepool::nn::device_code {
namespace {

/// One thread an output. Of equal values the first in the window wins; padding never does.
__global__ void max_pool_forward_kernel(Pooling p, const float* x, float* y, std::uint8_t* index) {
  const std::int64_t out_plane = static_cast<std::int64_t>(p.out_height) * p.out_width;
  const std::int64_t in_plane = static_cast<std::int64_t>(p.height) * p.width;
  for (std::int64_t i = first_index(); i < p.planes * out_plane; i += index_step()) {
    const float* from = x + i / out_plane * in_plane;
    const int place = static_cast<int>(i % out_plane);
    const int top = place / p.out_width * p.stride - p.padding_height;
    const int left = place % p.out_width * p.stride - p.padding_width;
    float best = -FLT_MAX;
    int position = 0;
    for (int kh = 0; kh < p.window_height; ++kh) {
      const int h = top + kh;
      if (h < 0 || h >= p.height) continue;
      for (int kw = 0; kw < p.window_width; ++kw) {
        const int w = left + kw;
        if (w < 0 || w >= p.width) continue;
        const float value = from[static_cast<std::int64_t>(h) * p.width + w];
        if (value > best) {
          best = value;
          position = kh * p.window_width + kw;
        }
      }
    }
    y[i] = best;
    index[i] = static_cast<std::uint8_t>(position);
  }
}

/// One thread an input: it adds up the windows that chose it, always in the same order.
__global__ void max_pool_backward_kernel(Pooling p, const float* dy, const std::uint8_t* index,
                                         float* dx) {
  const std::int64_t out_plane = static_cast<std::int64_t>(p.out_height) * p.out_width;
  const std::int64_t in_plane = static_cast<std::int64_t>(p.height) * p.width;
  // First and last window over a coordinate (with the padding added).
  const auto first = [&](int at, int window) {
    return at < window ? 0 : (at - window) / p.stride + 1;
  };
  for (std::int64_t i = first_index(); i < p.planes * in_plane; i += index_step()) {
    const std::int64_t plane = i / in_plane * out_plane;
    const int place = static_cast<int>(i % in_plane);
    const int h = place / p.width + p.padding_height;
    const int w = place % p.width + p.padding_width;
    const int last_oh = min(h / p.stride, p.out_height - 1);
    const int last_ow = min(w / p.stride, p.out_width - 1);
    float sum = 0;
    for (int oh = first(h, p.window_height); oh <= last_oh; ++oh) {
      for (int ow = first(w, p.window_width); ow <= last_ow; ++ow) {
        const std::int64_t o = plane + static_cast<std::int64_t>(oh) * p.out_width + ow;
        const int position = (h - oh * p.stride) * p.window_width + (w - ow * p.stride);
        if (index[o] == position) sum += dy[o];
      }
    }
    dx[i] = sum;
  }
}

}  // namespace

void max_pool_forward(const Pooling& p, const float* x, float* y, std::uint8_t* index,
                      cudaStream_t stream) {
  const std::int64_t count = static_cast<std::int64_t>(p.planes) * p.out_height * p.out_width;
  max_pool_forward_kernel<<<blocks_for(count), kThreads, 0, stream>>>(p, x, y, index);
  TIDEPOOL_CUDA_CHECK(cudaGetLastError());
}

void max_pool_backward(const Pooling& p, const float* dy, const std::uint8_t* index, float* dx,
                       cudaStream_t stream) {
  const std::int64_t count = static_cast<std::int64_t>(p.planes) * p.height * p.width;
  max_pool_backward_kernel<<<blocks_for(count), kThreads, 0, stream>>>(p, dy, index, dx);
  TIDEPOOL_CUDA_CHECK(cudaGetLastError());
}

void load_pooling() {
  cudaFuncAttributes attributes{};
  TIDEPOOL_CUDA_CHECK(cudaFuncGetAttributes(&attributes, max_pool_forward_kernel));
}

}  // namespace tidepool::nn::device_code
