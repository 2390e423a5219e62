// Budgets of a sweep as the user lists them.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace tidepool::cli {

/// One budget as it is ("60%", "400MiB"), or those of a range with both its ends: "30%..60%" in
/// four equal steps, "30%..60%:10%" in steps of that size. Errors are ErrorCode::usage.
Result<std::vector<std::string>> budgets_of_range(const std::string& text);

}  // namespace tidepool::cli
