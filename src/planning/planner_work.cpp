#include "planning/planner_work.h"

#include "planners/registry.h"
#include "planners/toolkit/largest_rounds.h"
#include "planning/budget.h"

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

}  // namespace tidepool
