// The list of planners. A new one is one file pair and one line in registry.cpp.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "planners/planner.h"

namespace tidepool {

struct PlannerInfo {
  std::string_view name;
  std::string_view description;
  std::unique_ptr<Planner> (*make)();
};

std::span<const PlannerInfo> planner_list();
/// Fails with a usage error that names the known planners.
Result<std::unique_ptr<Planner>> make_planner(std::string_view name);

}  // namespace tidepool
