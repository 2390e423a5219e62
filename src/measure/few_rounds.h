// The rounds of an iteration are alike: a few of them are enough to know the times of all.
#pragma once

#include "ir/program.h"

namespace tidepool {

/// The batch, of one device, of an iteration in rounds of the same size that has each kind of round
/// once: the first, which begins the sums of gradients, one between, and the last, which may be
/// smaller and updates the weights. The batch itself where it has no more rounds than that.
std::int64_t batch_of_few_rounds(const Program& program);

/// Sets the times of `program` from those of `few`, the same training with the batch of above.
/// False, and nothing is set, where their ops or algorithms are not the same after all.
bool repeat_times(const Program& few, Program& program);

}  // namespace tidepool
