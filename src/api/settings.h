// Settings of planners, by name.
#pragma once

#include <string>
#include <string_view>

#include "planning/planning_spec.h"

namespace tidepool::api {

/// Reads lines "name=value" into `spec`; empty lines are fine. `usage` names the line that has an
/// unknown name, a value that is none, or what the planner of `spec` does not read.
Result<void> apply_settings(std::string_view lines, PlannerSpec& spec);

}  // namespace tidepool::api
