// Who conflicts with a buffer, quickly and without a conflict graph where there are lifetimes.
#pragma once

#include <algorithm>

#include "pack/lifetimes.h"

namespace tidepool {

/// Lists the conflicts of a buffer. With lifetimes the time axis is cut into blocks that know who
/// is alive in them, so that a short-lived buffer meets only its surroundings.
class ConflictIndex {
 public:
  explicit ConflictIndex(const PackProblem& problem);

  /// Calls `visit(buffer)` once for each conflict, in an order that is always the same.
  template <class Visit>
  void for_each(std::size_t buffer, Visit&& visit) const {
    if (problem_.lifetimes.empty()) {
      for (const std::int32_t other : problem_.conflicts(buffer)) visit(other);
      return;
    }
    const Life& life = lives_[buffer];
    for (std::int32_t b = life.first_block; b <= life.last_block; ++b) {
      const auto block = static_cast<std::size_t>(b);
      for (std::int32_t k = block_start_[block]; k < block_start_[block + 1]; ++k) {
        const std::int32_t other = members_[static_cast<std::size_t>(k)];
        const Life& o = lives_[static_cast<std::size_t>(other)];
        // In the first block both are in, and nowhere else.
        if (std::max(o.first_block, life.first_block) == b && o.begin < life.end &&
            life.begin < o.end && other != static_cast<std::int32_t>(buffer)) {
          visit(other);
        }
      }
    }
  }

 private:
  struct Life {
    std::int32_t begin;
    std::int32_t end;
    std::int32_t first_block;
    std::int32_t last_block;
  };
  const PackProblem& problem_;
  std::vector<Life> lives_;
  std::vector<std::int32_t> block_start_;
  std::vector<std::int32_t> members_;
};

}  // namespace tidepool
