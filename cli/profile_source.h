#pragma once

#include "train/profiling.h"

namespace tidepool::cli {

/// The object "profile" of a command's JSON.
Json to_json(const ProfileSource& source);

}  // namespace tidepool::cli
