#pragma once

#include <unordered_map>

#include "trace/allocators/allocator.h"
#include "trace/allocators/free_list.h"

namespace tidepool {

/// NVIDIA's memory pool CnMem (github.com/NVIDIA/cnmem, the baseline of SmartPool/AutoSwap, section
/// VI-A): sizes in units of 512 B; one list of free blocks; the smallest that fits, of equals the
/// lowest, split whenever it is larger, the low part handed out; freed blocks merge with free
/// neighbours of the same driver allocation; when none fits, a driver allocation of exactly the
/// rounded size. Nothing is given back to the driver.
class CnMemAllocator : public Allocator {
 public:
  /// `reservation`: bytes taken from the driver at the start.
  explicit CnMemAllocator(Bytes reservation = 0);
  void allocate(BlockId block, Bytes bytes) override;
  void free(BlockId block) override;
  [[nodiscard]] Bytes reserved() const override { return reserved_; }

 private:
  static constexpr Bytes kUnit = 512;
  FreeList free_;
  std::unordered_map<BlockId, Range> used_;
  Bytes reserved_ = 0;
};

}  // namespace tidepool
