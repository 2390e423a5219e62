// What it takes at least to make a value again that is away: the bounds' view of recomputation. It
// knows nothing of strategies, as absences.h.
#pragma once

#include <span>
#include <vector>

#include "bound/absences.h"

namespace tidepool {

// Note [Recipes]. Whoever makes a value v again runs the op that made it, and needs what that op
// reads. A read value w that nobody accesses behind the start of v's first absence is needed for
// nothing else by then: so either it was held in memory for this, or it came back too. Where w is
// not smaller than v, holding w in the place of v frees nothing: v may be said to be there while w
// is. So let v and all such w, their own w and so on be one group, which is away while none of them
// is on the device. Where a group comes back in an absence, either one of its values is copied in,
// which is no fewer bytes than v, or all ops that made them run again within the absence. That is
// the recipe. A w belongs to one group only: its bytes stand for one v. It must have no copies that
// are counted for itself (absences, a copy that a host op made, a value that is the same in every
// iteration), or they could serve v for nothing. A copy out of w serves v and may be made as soon
// as w is.

/// How the value of an absence comes back without a copy.
struct Recipe {
  std::vector<OpId> ops;       ///< all of them run again; empty: it cannot be made again
  OpId born = kNone;           ///< the first op that makes a value of the group
  std::int32_t value = kNone;  ///< absences of one value have the same number
};

/// One per absence. One algorithm per op: what does not repeat its bits cannot be run again.
std::vector<Recipe> recipes_of(const Program& program, const AccessIndex& index,
                               std::span<const std::int32_t> algorithms,
                               std::span<const Absence> absences);

}  // namespace tidepool
