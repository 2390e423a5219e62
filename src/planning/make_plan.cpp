#include "planning/make_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "cost/turns_on_buses.h"
#include "lower/memory_sizes.h"
#include "planners/registry.h"
#include "planning/host_budget.h"

namespace tidepool {
namespace {

/// As much as a plan can have on the host.
Bytes bytes_of_all(const Program& program, const Machine& machine) {
  Bytes bytes = 0;
  for (const Tensor& t : program.tensors) bytes += align_up(t.bytes, machine.alignment());
  return bytes;
}

/// With the time that a program of this size has.
Result<PlannerOptions> with_time(const PlannerOptions& options, Workload& workload) {
  PlannerOptions mine = options;
  if (!options.usual_time || options.time_limit == Nanos::max()) return mine;
  const auto program = workload.program(workload.sub_batch());
  if (!program) return fail(program.error());
  const auto ops = static_cast<std::int64_t>((*program)->ops.size());
  mine.time_limit = options.time_limit * std::max(ops, kUsualOps) / kUsualOps;
  return mine;
}

/// A search that its time limit has ended says so.
void tell_of_the_limit(const PlannerOptions& options, Planned& planned) {
  constexpr double kAllOfIt = 0.95;
  if (options.evaluation_limit > 0 || options.time_limit == Nanos::max()) return;
  if (to_seconds(planned.plan_time) < kAllOfIt * to_seconds(options.time_limit)) return;
  planned.notes.push_back(
      fmt::format("the search was ended by its limit, {} (`time_limit`): more may find a faster "
                  "plan",
                  format_time(options.time_limit)));
}

/// Every tensor stays where it is, with the best algorithms that may be chosen: memory is no
/// matter.
PlannerOptions moving_nothing(PlannerOptions options) {
  options.may.swap = options.may.recompute = false;
  if (options.may.algorithms) options.algorithms = AlgorithmPolicy::fastest;
  options.known = {};  // they may move something
  return options;
}

/// `machine`: with its turns on buses; `budget`: within its memory.
Result<Planned> plan_inside(Planner& planner, Workload& workload, const Machine& machine,
                            const Budget& budget, const PlannerOptions& options) {
  if (budget.host > 0) {
    const auto program = workload.program(workload.sub_batch());
    if (!program) return fail(program.error());
    if (bytes_of_all(**program, machine) > budget.host) {
      PlannerOptions mine = options;
      mine.known = {};  // on other machines
      return plan_in_host_budget(planner, workload, machine, budget, mine);
    }
  }
  return plan_once(planner, workload, machine, budget, options);
}

}  // namespace

Result<Planned> make_plan(Planner& planner, Workload& workload, const Machine& on,
                          const Budget& wanted, const PlannerOptions& asked) {
  const auto timed = with_time(asked, workload);
  if (!timed) return fail(timed.error());
  const PlannerOptions& options = *timed;
  const Machine machine = with_turns_on_buses(on);
  const auto within = within_memory(machine, wanted);
  if (!within) return fail(within.error());
  if (!limited(wanted) && keeps_without_limit(planner.name())) {
    auto kept = plan_inside(planner, workload, machine, *within, moving_nothing(options));
    if (kept) kept->notes.insert(kept->notes.begin(), "nothing moves, as no `budget` is given");
    if (kept || kept.error().code != ErrorCode::infeasible) return kept;
  }
  auto planned = plan_inside(planner, workload, machine, *within, options);
  if (planned) tell_of_the_limit(options, *planned);
  return planned;
}

}  // namespace tidepool
