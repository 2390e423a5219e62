// What a paper says over all rows of its evaluation beside what comes out here. Each takes the rows
// of the reproduction of its name; figures of the paper that belong to no single row are in the
// texts.
#pragma once

#include <vector>

#include "base/json_fwd.h"
#include "table_report.h"

namespace tidepool::reproduce {

using Rows = std::vector<Json>;

void add_home_notes(const Rows& rows, TableReport& report);
void add_modnn_notes(const Rows& rows, TableReport& report);
void add_dqn_notes(const Rows& rows, TableReport& report);

}  // namespace tidepool::reproduce
