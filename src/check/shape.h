// Clauses 0, 1 and the counts of 5: what holds for each instruction by itself.
#pragma once

#include "check/subject.h"

namespace tidepool::checking {

/// Throws Refuted. Everything else may rely on what this has passed.
void check_shape(const Subject& subject, const CheckLimits& limits);

/// Per op: the algorithm it runs with. Throws Refuted where ops run too often or not at all.
std::vector<std::int32_t> check_counts(const Subject& subject);

}  // namespace tidepool::checking
