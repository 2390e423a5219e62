#pragma once

#include <array>
#include <limits>
#include <unordered_map>
#include <vector>

#include "trace/allocators/allocator.h"
#include "trace/allocators/free_list.h"

namespace tidepool {

/// PyTorch's caching allocator with its default settings (c10/cuda/CUDACachingAllocator.cpp): sizes
/// in units of 512 B; up to 1 MiB from a pool of 2 MiB segments, above from a pool whose segments
/// have 20 MiB for sizes below 10 MiB, otherwise the size in units of 2 MiB. Best fit within the
/// pool, of equals the lowest; split when at least 512 B (small pool) or more than 1 MiB (large
/// pool) remains, the low part handed out; freed blocks merge inside their segment. Segments are
/// kept, until the driver has no room for another one: then all that have no block in use go back
/// to it, and it is asked again.
class CachingAllocator : public Allocator {
 public:
  /// `driver`: what it has. Where that is not enough all the same, more is reserved.
  explicit CachingAllocator(Bytes driver = std::numeric_limits<Bytes>::max()) : driver_(driver) {}
  void allocate(BlockId block, Bytes bytes) override;
  void free(BlockId block) override;
  [[nodiscard]] Bytes reserved() const override { return reserved_; }

 private:
  static constexpr Bytes kUnit = 512;
  static constexpr Bytes kSmallest = kMiB;  ///< of the large pool: above this

  static Bytes segment_size(Bytes size);
  void release_unused();

  struct Used {
    Range range;
    bool large = false;
  };
  std::array<FreeList, 2> pools_;               ///< small, large
  std::array<std::vector<Range>, 2> segments_;  ///< of the pools
  std::unordered_map<BlockId, Used> used_;
  Bytes reserved_ = 0;
  Bytes driver_;
};

}  // namespace tidepool
