// Plans inside a host budget that is less than all tensors take, with a file behind the host or
// without one; and where a planner has none, the least host budget with which it has.
#pragma once

#include <cstdint>

#include "planning/plan_once.h"

namespace tidepool {

/// The plan that is found in any host budget, if that needs no more; or else the
/// fastest of these, each inside the host budget or, where there is a file behind the host, with
/// what the host cannot hold in it. That plan, and the one of a longer search for it; those made as
/// if the way to the host were slower, by the part of it that goes on to the file and several
/// times, so that less goes there and more is made again; and the one whose search keeps to the
/// host budget.
Result<Planned> plan_in_host_budget(Planner& planner, Workload& workload, const Machine& machine,
                                    const Budget& budget, const PlannerOptions& options);

/// After an error of `make_plan` inside a host budget: a plan that a short search finds all the
/// same, or the error with the least budget for which one did. Other errors are left as they are.
/// Two short searches; where the least is named a dozen, which take about the time limit once more,
/// and up to three whole ones.
enum class Least : std::uint8_t {
  named,
  any,  ///< some budget that is enough
};
Result<Planned> plan_or_least_host_budget(Error error, Planner& planner, Workload& workload,
                                          const Machine& machine, const Budget& budget,
                                          const PlannerOptions& options, Least least);

}  // namespace tidepool
