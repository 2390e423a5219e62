#include "trace/allocators/native.h"

namespace tidepool {

void NativeAllocator::allocate(BlockId block, Bytes bytes) {
  bytes_.emplace(block, bytes);
  live_ += bytes;
}

void NativeAllocator::free(BlockId block) {
  const auto known = bytes_.find(block);
  live_ -= known->second;
  bytes_.erase(known);
}

}  // namespace tidepool
