#include "trace/allocators/caching.h"

namespace tidepool {
namespace {

constexpr Bytes kSmallSegment = 2 * kMiB;
constexpr Bytes kLargeSegment = 20 * kMiB;
constexpr Bytes kOwnSegment = 10 * kMiB;  // from here on a segment is made for one size
constexpr Bytes kSegmentUnit = 2 * kMiB;

}  // namespace

Bytes CachingAllocator::segment_size(Bytes size) {
  if (size <= kSmallest) return kSmallSegment;
  return size < kOwnSegment ? kLargeSegment : align_up(size, kSegmentUnit);
}

void CachingAllocator::allocate(BlockId block, Bytes bytes) {
  const Bytes size = align_up(bytes, kUnit);
  const bool large = size > kSmallest;
  FreeList& pool = pools_[large ? 1 : 0];
  auto range = pool.take_best(size);
  if (!range) {
    const Bytes segment = segment_size(size);
    if (segment > driver_ - reserved_) release_unused();
    range = pool.new_segment(segment);
    segments_[large ? 1 : 0].push_back(*range);
    reserved_ += range->bytes;
  }
  const Bytes rest = range->bytes - size;
  if (large ? rest > kSmallest : rest >= kUnit) {
    pool.insert({range->address + size, rest});
    range->bytes = size;
  }
  used_.emplace(block, Used{*range, large});
}

void CachingAllocator::release_unused() {
  for (std::size_t p = 0; p < pools_.size(); ++p) {
    std::erase_if(segments_[p], [&](const Range& segment) {
      if (!pools_[p].take(segment)) return false;
      reserved_ -= segment.bytes;
      return true;
    });
  }
}

void CachingAllocator::free(BlockId block) {
  const auto known = used_.find(block);
  pools_[known->second.large ? 1 : 0].insert(known->second.range);
  used_.erase(known);
}

}  // namespace tidepool
