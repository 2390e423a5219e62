#pragma once

#include "lower/expansion.h"

namespace tidepool {

/// Where a tensor may have one place at a time, a life begins only when the one before it is over:
/// its copy in waits for that one's last call, its first call for that one's copy out.
void separate_lives(std::size_t tensors, Expansion& x);

}  // namespace tidepool
