// What a plan moves and repeats in one steady iteration.
#pragma once

#include "schedule/schedule.h"

namespace tidepool {

struct PlanTotals {
  Bytes copied_out = 0;  ///< to the host, results included
  Bytes copied_in = 0;   ///< to the device, inputs included
  /// Tensors that device ops use and that come back from the host after they left.
  std::int64_t swapped_tensors = 0;
  Bytes swapped_out = 0;            ///< copied out of those
  std::int64_t recomputed_ops = 0;  ///< runs of ops beyond one each
};

PlanTotals totals_of(const Program& program, const Plan& plan);

}  // namespace tidepool
