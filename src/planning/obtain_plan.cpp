#include "planning/obtain_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "base/at.h"
#include "base/counted.h"
#include "base/quantity.h"
#include "check/check.h"
#include "ir/load_profile.h"
#include "lower/memory_sizes.h"
#include "planners/registry.h"
#include "planners/settings.h"
#include "planning/algorithm_choice.h"
#include "planning/budget.h"
#include "planning/learning.h"
#include "planning/make_plan.h"
#include "sim/simulate.h"

namespace tidepool {
namespace {

using Clock = std::chrono::steady_clock;

/// Plans in any host budget, quickly, for as long as there is time.
class QuickPlans {
 public:
  QuickPlans(Planner& planner, const PlanRequest& request, Clock::time_point until)
      : planner_(planner),
        fixed_(request.subject.program),
        workload_(request.workload != nullptr ? *request.workload : fixed_),
        machine_(request.subject.machine),
        budget_(request.budget),
        options_(request.options),
        until_(until) {
    machine_.spaces[at(machine_.host())].bytes = 0;
    options_.time_limit = std::min<Nanos>(options_.time_limit, std::chrono::milliseconds(200));
    options_.evaluation_limit = 0;  // that would not limit every planner
    options_.progress = nullptr;
    options_.stop = [this, stop = request.options.stop] { return stop.requested() || late(); };
  }
  QuickPlans(const QuickPlans&) = delete;
  QuickPlans& operator=(const QuickPlans&) = delete;

  [[nodiscard]] bool late() const { return Clock::now() >= until_; }
  /// 0: as much as it takes.
  Result<Planned> within(Bytes host) {
    budget_.host = host;
    return make_plan(planner_, workload_, machine_, budget_, options_);
  }

 private:
  Planner& planner_;
  FixedWorkload fixed_;
  Workload& workload_;
  Machine machine_;
  Budget budget_;
  PlannerOptions options_;
  Clock::time_point until_;
};

/// After an error of planning inside a host budget: a plan that a short search finds all the same,
/// or the error with the least budget for which one did. Other errors are left as they are. Some
/// dozen plans, in what is left of the time limit and a little more.
Result<Planned> plan_or_least_host_budget(Error error, Planner& planner, const PlanRequest& request,
                                          Clock::time_point begun) {
  const Machine& machine = request.subject.machine;
  const auto budget = within_memory(machine, request.budget);
  if (error.code != ErrorCode::infeasible || !budget || budget->host == 0) return fail(error);
  constexpr Nanos kAtLeast = std::chrono::milliseconds(300);
  const Nanos limit = std::min<Nanos>(request.options.time_limit, std::chrono::hours(24));
  QuickPlans quick(planner, request, std::max(begun + limit, Clock::now() + kAtLeast));
  // What this function named earlier has to be enough when it is given.
  if (auto planned = quick.within(budget->host)) return planned;
  const auto without = quick.within(0);
  if (!without) return fail(error);  // the host is not what it fails for
  const Bytes alignment = machine.spaces[at(machine.host())].alignment;
  Bytes enough = without->lowered.plan.host_bytes();
  Bytes low = budget->host / alignment * alignment;
  if (enough <= budget->host) {  // short searches depend on the clock
    const CheckLimits limits = check_limits(machine, *budget);
    const auto program = request.program(without->sub_batch());
    if (!program) return fail(program.error());
    if (auto proof = check(**program, without->lowered.plan, limits); !proof) {
      return fail(proof.error());
    }
    return without;
  }
  // What the search that failed would have needed.
  if (error.of_host && error.smallest_feasible) {
    enough = std::min(enough, align_up(*error.smallest_feasible, alignment));
  }
  while (enough - low > alignment && !quick.late()) {
    if (request.options.stop.requested()) {
      return fail(ErrorCode::interrupted, "interrupted while looking for the smallest host budget");
    }
    const Bytes middle = align_up(low + (enough - low) / 2, alignment);
    const bool found = quick.within(middle).has_value();
    if (found || !quick.late()) (found ? enough : low) = middle;
  }
  error.smallest_feasible = enough;
  error.of_host = true;
  const std::string named =
      request.budget.host > 0 ? "`host_budget`" : fmt::format("host memory of '{}',", machine.name);
  const Bytes device = request.budget.device;
  error.message = fmt::format(
      "{} {} B ({}) is too small for what leaves the device{}; {} B ({}) are enough with planner "
      "'{}', the least found",
      named, budget->host, format_bytes(budget->host),
      limited(request.budget) ? fmt::format(" at {} B ({})", device, format_bytes(device)) : "",
      enough, format_bytes_up(enough), planner.name());
  return fail(std::move(error));
}

}  // namespace

Result<ObtainedPlan> obtain_plan(Planner& planner, const PlanRequest& asked, const Cache& cache,
                                 bool replan, Observer& observer) {
  PlanRequest request = asked;
  if (auto read = read_input_files(request.stated, request.options.values); !read) {
    return fail(read.error());
  }
  cache.open();
  if (!replan && !keeps_record(request.stated)) {
    if (auto known = cache.plan(request)) {
      observer.notice(Notice::plan_from_cache, "plan from the cache");
      return ObtainedPlan{std::move(*known), "cache", {}};
    }
  }
  const auto begun = Clock::now();
  FixedWorkload fixed(request.subject.program);
  Workload& workload = request.workload != nullptr ? *request.workload : fixed;
  auto planned =
      make_plan(planner, workload, request.subject.machine, request.budget, request.options);
  if (!planned) planned = plan_or_least_host_budget(planned.error(), planner, request, begun);
  if (!planned) return fail(planned.error());
  if (auto written = write_learning(request.stated, *planned); !written) {
    return fail(written.error());
  }
  // A planner that was told to stop gives what it has: not worth keeping.
  if (!observer.stop_requested()) cache.keep(request, *planned);
  return ObtainedPlan{std::move(*planned), "planner", {}};
}

Error for_planner(std::string_view planner, Error unmet, const Program& program, Bytes alignment,
                  AlgorithmPolicy policy) {
  if (unmet.code != ErrorCode::infeasible || unmet.of_host || meets_every_budget(planner)) {
    return unmet;
  }
  const auto made = make_planner(planner);
  if (!made) return unmet;
  Machine machine;
  machine.set_alignment(alignment);
  constexpr LinkSpeed kAny{1e12, Nanos{0}};  // what fits does not depend on it
  machine.set_links(kAny, kAny);
  FixedWorkload workload(program);
  PlannerOptions options;
  options.algorithms = policy;
  const auto planned = make_plan(**made, workload, machine, no_limit(), options);
  if (!planned) return unmet;
  const Bytes needed = planned->lowered.plan.device_bytes();
  unmet.message += fmt::format("; {} B ({}) are enough for planner '{}'", needed,
                               format_bytes_up(needed), planner);
  unmet.smallest_feasible = needed;
  return unmet;
}

}  // namespace tidepool
