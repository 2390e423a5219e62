#include "train/planning.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "base/quantity.h"
#include "check/check.h"
#include "ir/load_profile.h"
#include "sim/simulate.h"
#include "train/algorithm_choice.h"
#include "train/load_plan.h"
#include "train/profiling.h"

namespace tidepool {
namespace {

/// Names the space of which the plan needs more than there is.
Result<void> check_sizes(const std::string& path, const Plan& plan, const Machine& machine,
                         const Budget& budget) {
  const std::vector<Bytes> given = space_budgets(machine, budget);
  // Where the plan has other spaces than the machine, the proof says so.
  for (std::size_t s = 0; s < std::min(given.size(), plan.arenas.size()); ++s) {
    const Bytes needed = plan.arenas[s].bytes;
    if (needed <= given[s]) continue;
    return fail(Error{
        ErrorCode::infeasible,
        fmt::format("{}: the plan needs {} B ({}) of {} memory, the budget is {} B ({})", path,
                    needed, format_bytes_up(needed), space_name(machine, static_cast<SpaceId>(s)),
                    given[s], format_bytes(given[s])),
        needed});
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

Result<BudgetSpec> budget_of_plan(const BudgetSpec& given, const std::string& path,
                                  const Job& job) {
  const auto file = load_plan(path);
  if (!file) return fail(file.error());
  // What it was planned for means nothing to another job.
  if (auto same = check_fingerprint(path, file->fingerprint, job.fingerprint()); !same) {
    return fail(same.error());
  }
  if (auto same = check_program(path, file->program, job.program()); !same) {
    return fail(same.error());
  }
  BudgetSpec budget = given;
  if (!budget.limited()) budget.device = {.bytes = file->device_budget};
  if (budget.host == 0) budget.host = file->host_budget;
  return budget;
}

Result<ObtainedPlan> plan_from_file(const std::string& path, const Profile& subject,
                                    const Budget& budget) {
  const auto start = std::chrono::steady_clock::now();
  auto file = load_plan(path);
  if (!file) return fail(file.error());
  const auto read = std::chrono::steady_clock::now();
  if (auto same = check_fingerprint(path, file->fingerprint, subject.fingerprint); !same) {
    return fail(same.error());
  }
  if (auto same = check_program(path, file->program, subject.program); !same) {
    return fail(same.error());
  }
  if (auto fits = check_sizes(path, file->plan, subject.machine, budget); !fits)
    return fail(fits.error());
  // Against the machine here, on which it runs, and that of the file, on which it is timed.
  auto proof = check(subject.program, file->plan, check_limits(subject.machine, budget));
  if (proof) proof = check(file->program, file->plan, check_limits(file->machine, budget));
  if (!proof) return fail(proof.error().code, fmt::format("{}: {}", path, proof.error().message));
  ObtainedPlan plan;
  plan.from = "file";
  plan.planned.lowered.plan = std::move(file->plan);
  plan.planned.lowered.strategy = std::move(file->strategy);
  plan.planned.plan_time = read - start;
  plan.planned.check_time = std::chrono::steady_clock::now() - read;
  // What the file says of the plan may be of another version, or edited.
  Lowered& lowered = plan.planned.lowered;
  lowered.strategy.algorithms = chosen_algorithms(file->program, lowered.plan);
  lowered.iteration_time = long_run(file->program, lowered.plan, file->machine).iteration_time;
  lowered.compute_time = totals_of(file->program, lowered.plan).compute_time;
  plan.profile = {file->fingerprint, std::move(file->program), std::move(file->machine)};
  return plan;
}

}  // namespace tidepool
