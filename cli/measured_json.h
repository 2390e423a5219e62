// Measured shares in --json.
#pragma once

#include <optional>
#include <string>

#include "base/json_fwd.h"
#include "lower/overhead.h"

namespace tidepool::cli {

/// `name`, with _low and _high the least and the most that it may be, with _noise what makes it
/// doubtful; all null where nothing was measured, the last also where nothing does.
void add_share(Json& out, const std::string& name, const std::optional<MeasuredShare>& measured);

}  // namespace tidepool::cli
