#include "planning/obtain_plan.h"

#include <fmt/format.h>

#include "base/quantity.h"
#include "lower/lower.h"
#include "planners/registry.h"
#include "planners/settings.h"
#include "planners/toolkit/wear.h"
#include "planning/host_budget.h"
#include "planning/learning.h"
#include "planning/make_plan.h"

namespace tidepool {
namespace {

/// A plan of less memory is one of more too, however far its search went: whether the cache is
/// looked through for such. With an evaluation limit the result depends on the seed alone.
bool begins_with_kept(const PlanRequest& request) {
  return begins_with_plans(request.planner) && request.options.evaluation_limit == 0 &&
         request.options.observations.empty() && !keeps_record(request.stated) &&
         !leaves_to_file(request.subject.machine);
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
  std::optional<Planned> kept;
  if (begins_with_kept(request)) {
    kept = cache.fastest_that_fits(request);
    if (kept) request.options.known = {&kept->lowered, 1};
  }
  FixedWorkload fixed(request.subject.program);
  Workload& workload = request.workload != nullptr ? *request.workload : fixed;
  auto planned =
      make_plan(planner, workload, request.subject.machine, request.budget, request.options);
  if (!planned)
    planned = plan_or_least_host_budget(planned.error(), planner, workload, request.subject.machine,
                                        request.budget, request.options, Least::named);
  if (!planned) return fail(planned.error());
  if (auto written = write_learning(request.stated, *planned); !written) {
    return fail(written.error());
  }
  // A planner that was told to stop gives what it has: not worth keeping.
  if (!observer.stop_requested()) {
    if (begins_with_kept(request)) cache.drop_slower(request, *planned);
    cache.keep(request, *planned);
  }
  return ObtainedPlan{std::move(*planned), "planner", {}};
}

}  // namespace tidepool
