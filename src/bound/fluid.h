// The fluid relaxation of swapping: a linear program whose optimum no swap schedule can beat.
//
// Note [Fluid relaxation]. Tensors are divisible, copies have no latency, addresses do not matter.
// Variables are, per gap, the bytes x that are away and the bytes y <= x that are copied out for it
// (the host may still hold the rest from an earlier gap of the same version), and, at the start and
// the end of every op, the bytes O copied out and I copied in so far. Copies out can only be of
// gaps that have begun, copies in must be done when the gap ends, both links have their speed, and
// what is live minus what is away stays within the limit while every op runs. Stalls before ops are
// variables; the optimum is their least sum. Time is cyclic: what wraps over the end of the
// iteration appears at its start. Every steady schedule that only keeps, swaps and drops gives
// values that satisfy all this, so its stalls sum up to at least the optimum. Recomputation is not
// covered.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "cost/machine.h"
#include "ir/access_index.h"

namespace tidepool {

struct FluidProblem {
  const Program& program;
  const AccessIndex& index;
  const Machine& machine;
  std::span<const std::int32_t> algorithms;  ///< one per op
};

struct FluidBound {
  bool feasible = false;      ///< false: no schedule keeps the load within the limit
  bool stopped = false;       ///< time was up, or cancelled: nothing is known
  Nanos overhead{};           ///< least sum of stalls, rounded down
  std::vector<double> share;  ///< per gap: the part that is away in an optimum, 0 to 1
};

struct FluidOptions {
  Nanos time_limit = Nanos::max();
  std::function<bool()> cancelled;  ///< may be empty; asked every half a second of compute time
};

/// The least overhead under a limit on the memory load.
FluidBound fluid_bound(const FluidProblem& problem, Bytes limit, const FluidOptions& options = {});

/// The least load without overhead, rounded down; and the shares that reach it.
struct FluidLoad {
  bool stopped = false;
  Bytes bytes = 0;
  std::vector<double> share;
};
FluidLoad fluid_least_load(const FluidProblem& problem, const FluidOptions& options = {});

}  // namespace tidepool
