// When ops start in an iteration in which nothing stalls.
#pragma once

#include <span>
#include <vector>

#include "ir/access_index.h"

namespace tidepool {

/// Per op and one past the last, which is the compute time. Host ops take no time. One algorithm
/// per op.
std::vector<Nanos> unstalled_starts(const Program& program,
                                    std::span<const std::int32_t> algorithms);

/// How long the gap's tensor is idle then: from the end of one access to the start of the next.
Nanos idle_time(const Gap& gap, std::span<const Nanos> starts);

}  // namespace tidepool
