// How many blocks a launch gets.
#pragma once

#include <algorithm>
#include <cstdint>

#include "device/cuda/check.h"

namespace tidepool::nn::device_code {

inline constexpr int kThreads = 256;

/// Enough blocks of kThreads to fill any GPU built so far (132 multiprocessors of 2048 threads on
/// an H200), and no more than `items` need; loops stride over the rest.
inline unsigned blocks_for(std::int64_t items) {
  constexpr std::int64_t kMost = 132 * 8;
  return static_cast<unsigned>(
      std::clamp<std::int64_t>((items + kThreads - 1) / kThreads, 1, kMost));
}

/// First index of this thread in a grid-stride loop, and its step.
__device__ inline std::int64_t first_index() {
  return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ inline std::int64_t index_step() {
  return static_cast<std::int64_t>(gridDim.x) * blockDim.x;
}

}  // namespace tidepool::nn::device_code
