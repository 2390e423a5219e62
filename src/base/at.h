// An id or index as a subscript.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tidepool {

/// `tensors[at(id)]`; not negative.
constexpr std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }

}  // namespace tidepool
