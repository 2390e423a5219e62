// Tensors that may not move: pinned ones, and those of programs with single placements; and bytes
// that stay taken.
#pragma once

#include "check/subject.h"

namespace tidepool::checking {

/// Clause 6. Throws Refuted.
void check_placements(const Subject& subject);

}  // namespace tidepool::checking
