#pragma once

#include <unordered_map>

#include "trace/allocators/allocator.h"

namespace tidepool {

/// cudaMalloc and cudaFree for every block: reserves what is live, so that its peak is the peak
/// load (SmartPool/AutoSwap, section VI-A; what the driver rounds up is not counted).
class NativeAllocator : public Allocator {
 public:
  void allocate(BlockId block, Bytes bytes) override;
  void free(BlockId block) override;
  [[nodiscard]] Bytes reserved() const override { return live_; }

 private:
  std::unordered_map<BlockId, Bytes> bytes_;
  Bytes live_ = 0;
};

}  // namespace tidepool
