// A program whose bound holds for every choice of algorithms.
#pragma once

#include <vector>

#include "ir/program.h"

namespace tidepool {

// Note [Any algorithms]. Take a schedule with any algorithms. Let each op, and each of its clones,
// run only for the last part of its time, as long as its fastest algorithm takes, and call the rest
// a stall before it; let its workspace be the least of all. What the fluid relaxation asks of a
// schedule still holds: nothing is begun, ended or copied at another time, links copy during
// stalls, and the load is no larger. So its iterations are iterations of the program in which every
// op has one algorithm, of the least time and the least workspace, and no shorter than the least of
// that program. It may be far below what can be had: the two seldom belong to one algorithm. So the
// relaxation may also be told of each op's algorithms (FluidProblem::choices): it then runs parts
// of them, which sum up to one; what they take more than the best, in time and in workspace, is
// that of the parts. A schedule has one of them whole.

/// What an algorithm takes more than the least time and the least workspace of its op.
struct MoreThanBest {
  Nanos time{};
  Bytes workspace = 0;  ///< of aligned ones
};

/// Per op: its algorithms that count, but those that are worse than another one; the least
/// workspace comes first. Empty where one of them is the best in both.
using AlgorithmChoices = std::vector<std::vector<MoreThanBest>>;
AlgorithmChoices more_than_best(const Program& program, Bytes alignment);

/// Each op with one algorithm of the least time and the least workspace, which may run again.
/// Algorithms that nobody has measured (they take no time, others of the op do) do not count.
Program with_best_algorithms(Program program);

/// Some device op has several algorithms that count.
bool has_a_choice(const Program& program);

}  // namespace tidepool
