// The packing of an allocator that sees one buffer after the other: by begin, each in the smallest
// hole there is then.
#pragma once

#include "pack/pack.h"

namespace tidepool {

/// In time n log n, so that there is a packing at once of hundreds of thousands of buffers. The
/// problem has lifetimes and nothing fixed.
Packing pack_by_sweep(const PackProblem& problem);

}  // namespace tidepool
