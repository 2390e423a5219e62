// A program whose bound holds for every choice of algorithms.
#pragma once

#include "ir/program.h"

namespace tidepool {

// Note [Any algorithms]. Take a schedule with any algorithms. Let each op, and each of its clones,
// run only for the last part of its time, as long as its fastest algorithm takes, and call the rest
// a stall before it; let its workspace be the least of all. What the fluid relaxation asks of a
// schedule still holds: nothing is begun, ended or copied at another time, links copy during
// stalls, and the load is no larger. So its iterations are iterations of the program in which every
// op has one algorithm, of the least time and the least workspace, and no shorter than the least of
// that program. It may be far below what can be had: the two seldom belong to one algorithm.

/// Each op with one algorithm of the least time and the least workspace, which may run again.
/// Algorithms that nobody has measured (they take no time, others of the op do) do not count.
Program with_best_algorithms(Program program);

/// Some device op has several algorithms that count.
bool has_a_choice(const Program& program);

}  // namespace tidepool
