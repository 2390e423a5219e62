#pragma once

#include "base/json_fwd.h"
#include "cost/machine.h"

namespace tidepool {

Json to_json(const Machine& machine);
/// Throws JsonFieldError for a field that is missing or wrong.
Machine machine_from_json(const JsonCursor& json);

}  // namespace tidepool
