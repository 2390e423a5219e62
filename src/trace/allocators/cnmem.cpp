#include "trace/allocators/cnmem.h"

namespace tidepool {

CnMemAllocator::CnMemAllocator(Bytes reservation) : reserved_(align_up(reservation, kUnit)) {
  if (reserved_ > 0) free_.insert(free_.new_segment(reserved_));
}

void CnMemAllocator::allocate(BlockId block, Bytes bytes) {
  const Bytes size = align_up(bytes, kUnit);
  auto range = free_.take_best(size);
  if (!range) {
    range = free_.new_segment(size);
    reserved_ += size;
  }
  if (range->bytes > size) free_.insert({range->address + size, range->bytes - size});
  used_.emplace(block, Range{range->address, size});
}

void CnMemAllocator::free(BlockId block) {
  const auto known = used_.find(block);
  free_.insert(known->second);
  used_.erase(known);
}

}  // namespace tidepool
