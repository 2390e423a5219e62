// A plan as tables of integers, see tidepool.h.
#pragma once

#include "api/data.h"

namespace tidepool::api {

Cells make_table(const PlanData& plan, tp_table which);

}  // namespace tidepool::api
