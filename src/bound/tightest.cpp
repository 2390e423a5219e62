#include "bound/tightest.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "bound/binding_op.h"
#include "bound/clp/clp_calls.h"
#include "bound/some_ops.h"

namespace tidepool {
namespace {

/// Programs of so many ops are left to the linear program of all: it took 2 s of 450 ops, and 18 s
/// of 620.
constexpr std::size_t kAllOps = 450;

void raise(TightestBound& bound, Nanos overhead, BoundBy by) {
  if (overhead <= bound.fluid.overhead) return;
  bound.fluid.overhead = overhead;
  bound.by = by;
}

}  // namespace

std::string_view to_string(BoundBy by) {
  switch (by) {
    case BoundBy::fluid:
      return "fluid";
    case BoundBy::some_ops:
      return "fluid of some ops";
    case BoundBy::binding_op:
      return "binding op";
  }
  return {};
}

TightestBound tightest_bound(const FluidProblem& problem, Bytes limit,
                             const FluidOptions& options) {
  const auto begun = std::chrono::steady_clock::now();
  // In no time it finds what needs no linear program.
  TightestBound bound{fluid_bound(problem, limit, {Nanos{0}, options.stop, options.give_up})};
  if (!bound.fluid.stopped) return bound;
  if (find_clp() == nullptr) return {fluid_bound(problem, limit, options)};
  const SomeOpsBound some = some_ops_bound(problem, limit, options);
  if (options.stop.requested()) return bound;
  FluidBound& fluid = bound.fluid;
  fluid.stopped = some.stopped;
  if (some.infeasible) return bound;
  // Only the linear program of all ops asks large tensors to be whole.
  if (!some.stopped && problem.program.ops.size() <= kAllOps) {
    FluidOptions rest = options;
    if (rest.time_limit != Nanos::max()) {
      rest.time_limit -= std::chrono::steady_clock::now() - begun;
    }
    fluid = fluid_bound(problem, limit, rest);
    if (options.stop.requested()) return bound;
    if (!fluid.feasible && !fluid.stopped) return bound;
    if (some.complete) fluid.stopped = false;
  }
  const bool all = some.complete || (!fluid.stopped && fluid.feasible);
  fluid.feasible = true;
  const Nanos solved = std::exchange(fluid.overhead, Nanos{0});
  if (!all) bound.by = BoundBy::binding_op;
  raise(bound, std::max(solved, some.overhead), all ? BoundBy::fluid : BoundBy::some_ops);
  FluidProblem without_host = problem;
  without_host.host_limit = 0;
  raise(bound, binding_op_bound(without_host, limit), BoundBy::binding_op);
  return bound;
}

}  // namespace tidepool
