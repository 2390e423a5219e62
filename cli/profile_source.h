#pragma once

#include <optional>
#include <string>

#include "measure/profiling.h"
#include "planning/measurement.h"

namespace tidepool::cli {

/// The object "profile" of a command's JSON.
Json to_json(const ProfileSource& source);
/// For people, where times come of a fake profiling.
inline constexpr const char* kFakeTimes = "times of a fake profiling (ops ran on made-up values)";
/// That, of times that come of a fake profiling; else empty.
std::string mark_of_fake(const std::optional<ProfileSource>& source);

}  // namespace tidepool::cli
