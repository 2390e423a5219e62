// The gaps that a planner thinks about.
#pragma once

#include <span>
#include <vector>

#include "cost/machine.h"
#include "ir/access_index.h"

namespace tidepool {

/// Gaps between device accesses, of tensors of at least so many bytes.
std::vector<GapId> candidate_gaps(const Program& program, const AccessIndex& index, Bytes smallest);

/// Gaps of smaller tensors are left alone by searches: a part of the peak so small that it is not
/// worth a copy's latency. One algorithm per op.
Bytes smallest_worth_moving(const Program& program, const AccessIndex& index,
                            const Machine& machine, std::span<const std::int32_t> algorithms);

/// There is time for half of the gap's two copies when nothing stalls. `starts`: unstalled_starts.
bool long_enough(const Gap& gap, const Program& program, const Machine& machine,
                 std::span<const Nanos> starts);

}  // namespace tidepool
