// Why gaps are decided as they are, in plain sentences, for searches that only see whole times.
#pragma once

#include "cost/machine.h"
#include "schedule/strategy.h"

namespace tidepool {

/// Gives each gap that has no reason yet one of what its decision costs beside how long its tensor
/// is idle where nothing stalls. A strategy of another program stays as it is. One algorithm per
/// op.
void add_reasons(const Program& program, const AccessIndex& index, const Machine& machine,
                 Strategy& strategy);

}  // namespace tidepool
