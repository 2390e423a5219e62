// Tags of whole values. Compiled with optimisation, which tests are not: runs of random plans do
// little else.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"

namespace tidepool::testing {

/// Every word gets the tag mixed with its position.
void write_tag(std::byte* to, Bytes bytes, std::uint64_t tag);

/// The tag of a whole value; a hash that equals no tag when the bytes are not one whole value.
std::uint64_t read_tag(const std::byte* from, Bytes bytes);

}  // namespace tidepool::testing
