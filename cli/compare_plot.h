// The picture of tidepool compare: overhead against budget.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "planning/comparison_row.h"
#include "planning/subject.h"

namespace tidepool::cli {

/// Before anything is planned: the name says a form there is, what draws it is there, the file can
/// be written and is none of `read`. An empty name is fine.
Result<void> check_plot(const std::string& path, std::span<const std::string> read);

/// Draws the rows, where a file is named and there are any.
Result<void> write_plot(const std::string& path, const Subject& subject,
                        const std::vector<ComparisonRow>& rows);

}  // namespace tidepool::cli
