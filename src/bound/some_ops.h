// The fluid relaxation in the time there is: a bound that grows round by round.
//
// Note [Some ops]. Whatever conditions of a relaxation are left out, its optimum is still a bound.
// Only few ops bind, so the conditions of Note [Fluid relaxation] are asked of some ops alone: what
// the links copy in the time between two of these, stalls included, is one condition. Each round
// solves the small linear program (certified as the whole one), looks which other ops break what
// was not asked of them (unasked_ops.h), and asks the worst of them too. Where none does the
// solution is one of the whole program, and the bound is the fluid bound, large tensors divided.
// Rounds begin with absences of a kind merged (parts.h), which makes a linear program of some
// hundred columns of any number of ops, first coarsely, then finely, and end with each absence for
// itself.
#pragma once

#include "bound/fluid.h"

namespace tidepool {

struct SomeOpsBound {
  /// Means what FluidBound's does, and is not above that but for what rounds both (Note
  /// [Certificate] in linear_program.h).
  Nanos overhead{};
  /// No op breaks anything: it is the fluid bound of divisible tensors. Never where algorithms may
  /// be chosen.
  bool complete = false;
  bool stopped = false;     ///< time was up, or cancelled: the best of the rounds until then
  bool infeasible = false;  ///< the host holds too little, and no file is behind it
};

/// For a program and a limit of which `fluid_bound` would have to solve its linear program: what
/// is beyond one device, or has ops that need more than the limit, is refused there.
SomeOpsBound some_ops_bound(const FluidProblem& problem, Bytes limit, const FluidOptions& options);

}  // namespace tidepool
