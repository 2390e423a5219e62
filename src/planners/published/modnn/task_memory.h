// What tasks need: moDNN's weights, its lower bounds on memory, and the ideal it compares with.
//
// Source: section 5.1.1 of the paper (see memory_manager.h), equations 6 and 7, and section 7.
//
// What the paper leaves open, or this system sees otherwise:
// - A task is a device op; updates of weights and sums over rounds are tasks too.
// - W is every persistent tensor that device ops use: weights, optimizer state, statistics. dW are
//   the gradients that ops read which change one of these. Together they are S_W.
// - Sizes are rounded up to the alignment of addresses, so that a bound can be met.
// - The baseline algorithm of an op is that of the least workspace, which may not be 0.
#pragma once

#include <vector>

#include "ir/program.h"

namespace tidepool::modnn {

/// Per tensor: 1 for W and dW.
std::vector<char> find_weights(const Program& program);

/// S_W.
Bytes weight_bytes(const Program& program, Bytes alignment);

/// An amount of memory, and the task that sets it.
struct MemoryBound {
  Bytes bytes = 0;
  OpId task = kNone;
};

/// Equation 7, for the sub-batch the program has: S_W, and the largest need of a task beyond it
/// with the least workspace.
MemoryBound bound_with_weights(const Program& program, Bytes alignment);

/// The same where weights leave like all other blocks: the largest need of a task.
MemoryBound bound_without_weights(const Program& program, Bytes alignment);

/// What training takes where memory does not matter: everything that device ops use, all at once,
/// and the largest workspace of the fastest algorithms. Not a peak load: nothing is ever freed.
Bytes ideal_memory(const Program& program, Bytes alignment);

}  // namespace tidepool::modnn
