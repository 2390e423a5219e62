// ControlBlock: what changes between iterations, read by kernels from device memory.
#pragma once

#include <cstdint>

namespace tidepool::nn {

/// No kernel argument changes between iterations; this is copied in at the start of each.
struct ControlBlock {
  std::uint64_t iteration = 0;
  std::uint64_t seed = 0;
  float learning_rate = 0;
  std::uint32_t guards = 0;  ///< bit g: ops with guard g run
  std::uint8_t reserved[40] = {};
};
static_assert(sizeof(ControlBlock) == 64);

}  // namespace tidepool::nn
