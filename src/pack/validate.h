// The independent check of packings.
#pragma once

#include "base/result.h"
#include "pack/pack.h"

namespace tidepool {

/// That no two conflicting buffers overlap, fixed ones are where they have to be, no offset is
/// negative, and the footprint is the highest byte used. The error names the first offence.
Result<void> validate(const PackProblem& problem, const Packing& packing);

}  // namespace tidepool
