#include "train/planning.h"

#include <fmt/format.h>

#include "base/quantity.h"
#include "check/check.h"
#include "train/load_plan.h"
#include "train/profiling.h"

namespace tidepool {
namespace {

/// Names what the plan needs and what there is.
Result<void> check_sizes(const std::string& path, const Plan& plan, const Budget& budget) {
  const auto too_large = [&](const char* what, Bytes needed, Bytes given) {
    return fail(
        Error{ErrorCode::infeasible,
              fmt::format("{}: the plan needs {} B ({}) of {} memory, the budget is {} B "
                          "({})",
                          path, needed, format_bytes_up(needed), what, given, format_bytes(given)),
              needed});
  };
  if (plan.device_bytes() > budget.device) {
    return too_large("device", plan.device_bytes(), budget.device);
  }
  if (budget.host > 0 && plan.host_bytes() > budget.host) {
    return too_large("host", plan.host_bytes(), budget.host);
  }
  return {};
}

}  // namespace

Result<ObtainedPlan> obtain_plan(Planner& planner, const PlanRequest& request, const Cache& cache,
                                 bool replan, Observer& observer) {
  cache.open();
  if (!replan) {
    if (auto known = cache.plan(request)) {
      observer.notice(Notice::plan_from_cache, "plan from the cache");
      return ObtainedPlan{std::move(*known), "cache", {}};
    }
  }
  FixedWorkload workload(request.subject.program);
  auto planned =
      make_plan(planner, workload, request.subject.machine, request.budget, request.options);
  if (!planned) return fail(planned.error());
  // A planner that was told to stop gives what it has: not worth keeping.
  if (!observer.stop_requested()) cache.keep(request, *planned);
  return ObtainedPlan{std::move(*planned), "planner", {}};
}

Result<ObtainedPlan> plan_from_file(const std::string& path, const Profile& subject,
                                    const Budget& budget) {
  auto file = load_plan(path);
  if (!file) return fail(file.error());
  if (auto same = check_fingerprint(path, file->fingerprint, subject.fingerprint); !same) {
    return fail(same.error());
  }
  if (auto same = check_program(path, file->program, subject.program); !same) {
    return fail(same.error());
  }
  if (auto fits = check_sizes(path, file->plan, budget); !fits) return fail(fits.error());
  if (auto proof = check(subject.program, file->plan, check_limits(subject.machine, budget));
      !proof) {
    return fail(proof.error().code, fmt::format("{}: {}", path, proof.error().message));
  }
  ObtainedPlan plan;
  plan.from = "file";
  plan.planned.lowered.plan = std::move(file->plan);
  plan.planned.lowered.strategy = std::move(file->strategy);
  plan.planned.lowered.iteration_time = file->iteration_time;
  plan.planned.lowered.compute_time = file->compute_time;
  plan.profile = {file->fingerprint, std::move(file->program), std::move(file->machine)};
  return plan;
}

}  // namespace tidepool
