#include "planning.h"

#include <fmt/format.h>

#include "check/check.h"
#include "plan_file.h"
#include "profiling.h"

namespace tidepool::cli {

Result<ObtainedPlan> obtain_plan(Planner& planner, const PlanRequest& request,
                                 const CacheArguments& arguments) {
  const Cache cache = Cache::of(arguments);
  if (!arguments.replan) {
    if (auto known = cache.plan(request)) {
      inform("tidepool: plan from the cache (--replan plans anew)\n");
      return ObtainedPlan{std::move(*known), "cache", {}};
    }
  }
  FixedWorkload workload(request.subject.program);
  auto planned =
      make_plan(planner, workload, request.subject.machine, request.budget, request.options);
  if (!planned) return fail(planned.error());
  // A planner that was told to stop gives what it has: not worth keeping.
  if (!interrupted()) cache.keep(request, *planned);
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
  if (auto proof = check(
          subject.program, file->plan,
          {budget.device, budget.host, subject.machine.alignment(), subject.machine.duplex()});
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

}  // namespace tidepool::cli
