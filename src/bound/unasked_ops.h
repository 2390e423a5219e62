// Where a solution of the fluid relaxation that asks some ops only breaks what is asked of others.
#pragma once

#include <span>
#include <vector>

#include "bound/fluid.h"
#include "bound/parts.h"

namespace tidepool {

/// A solution in bytes and nanoseconds.
struct FluidFlow {
  std::vector<double> away, copied, remade;  ///< per absence of the program, 0 to 1
  /// The time from one op that is asked to the next, with the stall in it; before the first one
  /// too, and after the last one.
  struct Stretch {
    double out_before, in_before;  ///< bytes copied so far
    double out_after, in_after;
    double stall;
  };
  std::vector<Stretch> stretches;
  std::vector<Bytes> load;  ///< per op, with nothing away but dead bytes
};

/// Per op by how many bytes it is beyond what is asked, 0 where it is not, when links copy out as
/// early and in as late as they can within each stretch, whose stall is spread over it. This steers
/// which ops are asked next; no bound depends on it.
std::vector<double> excesses(const FluidProblem& problem, const Parts& whole, Bytes limit,
                             std::span<const char> asked, const FluidFlow& flow);

}  // namespace tidepool
