#include "planning/planner_work.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "base/quantity.h"
#include "lower/lower.h"
#include "planners/registry.h"
#include "planners/toolkit/largest_rounds.h"
#include "planning/budget.h"
#include "planning/make_plan.h"

namespace tidepool {

Result<PlannerWork> PlannerWork::make(const Subject& subject, const std::string& name,
                                      const Budget& budget) {
  PlannerWork work;
  work.subject_ = &subject;
  auto planner = make_planner(name);
  if (!planner) return fail(planner.error());
  work.planner_ = std::move(*planner);
  if (subject.rounds == nullptr) return work;
  if (!chooses_sub_batch(name))
    work.planner_ = std::make_unique<LargestRounds>(std::move(work.planner_));
  auto sizes =
      sizes_within(subject.job_rounds(), budget.device, subject.profile.machine.alignment());
  if (!sizes) return fail(sizes.error());
  work.workload_ = std::make_unique<RestrictedWorkload>(*subject.rounds, std::move(*sizes));
  auto own = work.profile(work.workload_->sub_batch());
  if (!own) return fail(own.error());
  work.own_ = std::move(*own);
  return work;
}

Result<Profile> PlannerWork::profile(std::int64_t sub_batch) const {
  Profile profile = subject_->profile;
  if (workload_ == nullptr) return profile;
  const auto program = workload_->program(sub_batch);
  if (!program) return fail(program.error());
  profile.program = **program;
  return profile;
}

namespace {

/// The sizes that the budget can run, with the times that are known already.
std::unique_ptr<Workload> unmeasured(const Subject& subject, Bytes device) {
  const Program& stated = subject.profile.program;
  if (subject.offered.empty()) return std::make_unique<FixedWorkload>(stated);
  JobRounds rounds = subject.job_rounds();
  auto sizes = sizes_within(rounds, device, subject.profile.machine.alignment());
  if (!sizes) return std::make_unique<FixedWorkload>(stated);
  return std::make_unique<RoundsWorkload>(
      std::move(*sizes), [made = std::move(rounds.in_rounds), statistics = rounds.statistics](
                             std::int64_t size) { return made(size, statistics); });
}

}  // namespace

Error for_planner(const std::string& name, Error unmet, const Subject& subject,
                  const PlannerOptions& options) {
  if (unmet.code != ErrorCode::infeasible || unmet.of_host || !unmet.smallest_feasible ||
      meets_every_budget(name)) {
    return unmet;
  }
  auto planner = make_planner(name);
  if (!planner) return unmet;
  const Bytes least = *unmet.smallest_feasible;
  const auto workload = unmeasured(subject, least);
  if (!chooses_sub_batch(name) && workload->sub_batches().size() > 1) {
    *planner = std::make_unique<LargestRounds>(std::move(*planner));
  }
  // Before they are measured links have no speed.
  const Machine& machine = subject.profile.machine;
  const bool measured = machine.to_host().bytes_per_second > 0;
  const auto planned =
      make_plan(**planner, *workload, measured ? machine : any_machine(machine.alignment()),
                {least, 0}, options);
  if (planned || planned.error().of_host || !planned.error().smallest_feasible) return unmet;
  const Bytes needed = *planned.error().smallest_feasible;
  unmet.message +=
      fmt::format("; {} B ({}) are enough for planner '{}'", needed, format_bytes_up(needed), name);
  unmet.smallest_feasible = needed;
  return unmet;
}

}  // namespace tidepool
