// Sets of buffers that all conflict with each other: their bytes bound every packing from below.
#pragma once

#include <span>
#include <vector>

#include "base/stop.h"
#include "pack/pack.h"

namespace tidepool {

/// A list of cliques, and the cliques of each buffer. Every buffer is in at least one.
class Cliques {
 public:
  Cliques(std::size_t buffers, std::vector<std::vector<std::int32_t>> members);

  [[nodiscard]] std::size_t count() const { return member_start_.size() - 1; }
  [[nodiscard]] std::span<const std::int32_t> members(std::size_t clique) const {
    return part(members_, member_start_, clique);
  }
  [[nodiscard]] std::span<const std::int32_t> of(std::size_t buffer) const {
    return part(cliques_, clique_start_, buffer);
  }

 private:
  static std::span<const std::int32_t> part(const std::vector<std::int32_t>& all,
                                            const std::vector<std::int32_t>& start, std::size_t i) {
    return std::span(all).subspan(static_cast<std::size_t>(start[i]),
                                  static_cast<std::size_t>(start[i + 1] - start[i]));
  }
  std::vector<std::int32_t> member_start_;
  std::vector<std::int32_t> members_;
  std::vector<std::int32_t> clique_start_;
  std::vector<std::int32_t> cliques_;
};

/// With lifetimes: all maximal cliques, the sets alive at one time. On a graph: one for each
/// buffer, found by taking the conflicts that began before it, the latest first, as long as they
/// all conflict with each other; sets inside others are left out where that is cheap to see.
Cliques find_cliques(const PackProblem& problem);

/// The most bytes in one of `find_cliques`: no packing is smaller. With lifetimes the peak load.
/// When `stop` says so, the most of those found until then.
Bytes clique_bound(const PackProblem& problem, const Stop& stop = {});

}  // namespace tidepool
