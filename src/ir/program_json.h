// The stable JSON form of a Program. Times are whole nanoseconds, sizes whole bytes.
#pragma once

#include "base/json_fwd.h"
#include "ir/program.h"

namespace tidepool {

Json to_json(const Program& program);

/// Throws JsonFieldError (see read_json) for a field that is missing or wrong, and for a program
/// that `validate` refuses.
Program program_from_json(const JsonCursor& json);

}  // namespace tidepool
