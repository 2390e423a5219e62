// What the deep Q-network paper says of its figure 5, and whether it comes out.
#pragma once

#include <vector>

#include "base/json_fwd.h"
#include "table_report.h"

namespace tidepool::cli {

/// `rows`: of all workloads and budgets, as `reproduce dqn` records them.
void add_dqn_notes(const std::vector<Json>& rows, TableReport& report);

}  // namespace tidepool::cli
