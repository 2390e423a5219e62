// The tightest bound that can be had in a time: of the linear program of all ops where that is
// solved, else of some ops (some_ops.h), else of one (binding_op.h).
#pragma once

#include <string_view>

#include "bound/fluid.h"

namespace tidepool {

enum class BoundBy : unsigned char { fluid, some_ops, binding_op };

/// "fluid", "fluid of some ops", "binding op".
std::string_view to_string(BoundBy by);

struct TightestBound {
  FluidBound fluid;  ///< `stopped`: more time may prove more; feasible all the same
  BoundBy by = BoundBy::fluid;
};

/// Interrupted (`options.stop`) it is as `fluid_bound`. No shares.
TightestBound tightest_bound(const FluidProblem& problem, Bytes limit, const FluidOptions& options);

}  // namespace tidepool
