// What CudaTagRunner's kernel does. Apart from it: nvcc reads this header and not the rest of the
// tests' support.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "device/device.h"

namespace tidepool::testing {

struct TagOperand {
  std::byte* data = nullptr;
  Bytes bytes = 0;
  bool reads = false;
  bool writes = false;
};

/// What one device op does; handed to the kernel by value.
struct TagJob {
  static constexpr std::size_t kMost = 8;
  std::uint64_t hash = 0;
  std::size_t count = 0;
  TagOperand operands[kMost];
  std::byte* workspace = nullptr;
  Bytes workspace_bytes = 0;
};

/// `stream` is a cuda::CudaStream.
void enqueue_tags(const TagJob& job, NativeStream stream);

}  // namespace tidepool::testing
