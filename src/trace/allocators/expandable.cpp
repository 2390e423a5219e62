#include "trace/allocators/expandable.h"

namespace tidepool {
namespace {

constexpr Bytes kSmallPage = 2 * kMiB;
constexpr Bytes kLargePage = 20 * kMiB;

Bytes whole_pages(Bytes bytes, Bytes page) { return (bytes + page - 1) / page * page; }

}  // namespace

std::optional<Range> ExpandableAllocator::take(Pool& pool, Bytes size) {
  auto best = pool.free.take_best(size);
  if (!best || best->address + best->bytes < pool.mapped) return best;
  const Range last = *best;
  if (auto inner = pool.free.take_best(size)) {
    pool.free.insert(last);
    return inner;
  }
  return best;
}

void ExpandableAllocator::allocate(BlockId block, Bytes bytes) {
  const Bytes size = align_up(bytes, kUnit);
  const bool large = size > kSmallest;
  Pool& pool = pools_[large ? 1 : 0];
  auto range = take(pool, size);
  if (!range) {
    range = pool.free.take_ending_at(pool.mapped).value_or(Range{pool.mapped, 0});
    const Bytes more = whole_pages(size - range->bytes, large ? kLargePage : kSmallPage);
    range->bytes += more;
    pool.mapped += more;
  }
  const Bytes rest = range->bytes - size;
  if (rest >= kUnit) {
    pool.free.insert({range->address + size, rest});
    range->bytes = size;
  }
  used_.emplace(block, Used{*range, large});
}

void ExpandableAllocator::free(BlockId block) {
  const auto known = used_.find(block);
  pools_[known->second.large ? 1 : 0].free.insert(known->second.range);
  used_.erase(known);
}

}  // namespace tidepool
