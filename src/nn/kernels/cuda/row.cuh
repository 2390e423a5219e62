// Rows of a matrix, one warp each: which rows are a warp's, and sums over their lanes, in every
// lane and always in the same order.
#pragma once

#include <cstdint>

#include "nn/kernels/cuda/grid.cuh"

namespace tidepool::nn::device_code {

inline constexpr unsigned kWholeWarp = 0xffffffffU;

__device__ inline std::int64_t row_lane() { return threadIdx.x % 32; }
/// First row of this warp when warps take rows in turn, and the step.
__device__ inline std::int64_t first_row() { return first_index() / 32; }
__device__ inline std::int64_t row_step() { return index_step() / 32; }

__device__ inline double row_sum(double value) {
  for (int offset = 16; offset > 0; offset /= 2) {
    value += __shfl_xor_sync(kWholeWarp, value, offset);
  }
  return value;
}

__device__ inline float row_max(float value) {
  for (int offset = 16; offset > 0; offset /= 2) {
    value = fmaxf(value, __shfl_xor_sync(kWholeWarp, value, offset));
  }
  return value;
}

}  // namespace tidepool::nn::device_code
