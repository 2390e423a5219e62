#pragma once

#include <array>
#include <optional>
#include <unordered_map>

#include "trace/allocators/allocator.h"
#include "trace/allocators/free_list.h"

namespace tidepool {

/// PyTorch's expandable segments (expandable_segments:True): sizes in units of 512 B; up to 1 MiB
/// from the small pool, above from the large one. Each pool is one range of addresses that grows by
/// mapping pages of 2 MiB (small) or 20 MiB (large). Best fit among the free mapped ranges, of
/// equals the lowest; the one at the end of the mapped bytes counts as the largest, since it can
/// grow. Split when at least 512 B remains; when none fits, as many pages are mapped behind the
/// last as the free bytes before them do not cover. Pages stay mapped; the mapped bytes are what is
/// reserved. Where little is allocated that can be more than CachingAllocator reserves, which
/// rounds segments of 10 MiB and above to 2 MiB: a block of 12 MiB takes a page of 20 MiB here.
class ExpandableAllocator : public Allocator {
 public:
  void allocate(BlockId block, Bytes bytes) override;
  void free(BlockId block) override;
  [[nodiscard]] Bytes reserved() const override { return pools_[0].mapped + pools_[1].mapped; }

 private:
  static constexpr Bytes kUnit = 512;
  static constexpr Bytes kSmallest = kMiB;  ///< of the large pool: above this

  struct Pool {
    FreeList free;
    Bytes mapped = 0;  ///< [0, mapped) has pages
  };
  struct Used {
    Range range;
    bool large = false;
  };
  /// The free range for `size` bytes, if there is one.
  static std::optional<Range> take(Pool& pool, Bytes size);

  std::array<Pool, 2> pools_;  ///< small, large
  std::unordered_map<BlockId, Used> used_;
};

}  // namespace tidepool
