// Clause 2, and host ops in the program's order (5): happens-before, by vector clocks.
#pragma once

#include "check/subject.h"

namespace tidepool::checking {

/// Throws Refuted.
void check_races(const Subject& subject);

}  // namespace tidepool::checking
