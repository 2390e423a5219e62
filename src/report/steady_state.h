#pragma once

// Two iterations of a plan's simulation that agree, from which pictures are drawn.

#include <vector>

#include "lower/plan_file.h"
#include "sim/simulate.h"

namespace tidepool {

/// The last two iterations of a simulation that is long enough for them to agree.
struct SteadyState {
  std::vector<Span> previous;
  std::vector<Span> current;
  Nanos start{};  ///< of the current iteration
  Nanos period{};
  bool periodic = false;
};

/// Simulates until two iterations agree, or, `periodic` false, for as long as that may take.
SteadyState steady_state(const PlanFile& file);

}  // namespace tidepool
