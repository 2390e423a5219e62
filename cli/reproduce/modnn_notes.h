// What the paper says over all of moDNN's networks beside what comes out here.
#pragma once

#include <vector>

#include "base/json.h"
#include "table_report.h"

namespace tidepool::cli {

/// `rows`: those of reproduce_modnn.
void add_modnn_notes(const std::vector<Json>& rows, TableReport& report);

}  // namespace tidepool::cli
