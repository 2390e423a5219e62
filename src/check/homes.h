// Tensors whose home is the device.
#pragma once

#include "check/subject.h"

namespace tidepool::checking {

/// Clause 7. Throws Refuted.
void check_homes(const Subject& subject);

}  // namespace tidepool::checking
