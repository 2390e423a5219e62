// What the system says of an error number.
#pragma once

#include <string>

namespace tidepool {

/// "No space left on device (ENOSPC)".
std::string describe_errno(int reason);

}  // namespace tidepool
