// What a plan decides for each gap, and why: `tidepool plan --explain`.
#pragma once

#include "base/json_fwd.h"
#include "lower/plan_file.h"

namespace tidepool::cli {

Json decisions(const PlanFile& file);
void print_decisions(const PlanFile& file);

}  // namespace tidepool::cli
