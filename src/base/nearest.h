// What to say of a name that is none: the nearest one that is.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tidepool {

/// Characters to insert, remove, replace, or exchange with their neighbour until both are equal.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// The nearest of `names` where one is near enough to be meant; else empty. The first of several.
std::string_view nearest(std::string_view word, std::span<const std::string_view> names);

/// "; did you mean 'train'?", or nothing.
std::string did_you_mean(std::string_view word, std::span<const std::string_view> names);

/// "unknown planner 'tied'; did you mean 'tide'? There are: none, autoswap, tide".
Error unknown_name(std::string_view kind, std::string_view name,
                   std::span<const std::string_view> names);

}  // namespace tidepool
