// Clauses 3 and 4: every op reads what the original program gives it, and persistent tensors are
// carried on. Given that there are no races, list order is as good as any.
#pragma once

#include "check/subject.h"

namespace tidepool::checking {

/// `algorithms`: per op. Throws Refuted.
void check_values(const Subject& subject, const std::vector<std::int32_t>& algorithms);

}  // namespace tidepool::checking
