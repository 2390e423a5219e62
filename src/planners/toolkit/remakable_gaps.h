// The gaps over which a tensor may be dropped and made again, and what that costs.
#pragma once

#include <span>
#include <vector>

#include "base/stop.h"
#include "cost/machine.h"
#include "planners/toolkit/timeline_search.h"

namespace tidepool {

struct RemakableGap {
  GapId gap = kNone;
  OpId from = kNone;
  OpId to = kNone;
  Bytes bytes = 0;
  Nanos time{};  ///< of the clones, where everything else is kept
  /// Gaps of the tensors that the clones then read: where those are away too, they have to be back
  /// by the time this one is made.
  std::vector<GapId> sources{};
};

/// Those worth thinking about, in the order in which they begin: not where many ops would have to
/// run beside gaps that are kept. One algorithm per op. Asked to stop, those found so far.
std::vector<RemakableGap> remakable_gaps(const Program& program, const AccessIndex& index,
                                         const Machine& machine,
                                         const std::vector<std::int32_t>& algorithms,
                                         const Stop& stop = {});

/// Remakes the gaps that save most bytes for their time, up to this part of all their bytes, and
/// keeps the rest. `gaps`: of all gaps of the program, how many there are.
AwayGaps cheapest_remade(std::span<const RemakableGap> remakable, std::size_t gaps, double part);

}  // namespace tidepool
