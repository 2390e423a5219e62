#pragma once

#include <optional>
#include <string>

#include "train/profiling.h"

namespace tidepool::cli {

/// The object "profile" of a command's JSON.
Json to_json(const ProfileSource& source);
/// For people, of times that come of a fake profiling; else empty.
std::string mark_of_fake(const std::optional<ProfileSource>& source);

}  // namespace tidepool::cli
