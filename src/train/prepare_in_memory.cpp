#include "train/prepare_in_memory.h"

#include "job/offered_rounds.h"
#include "lower/lower.h"
#include "measure/expected_memory.h"
#include "measure/measured_subject.h"
#include "planning/budget.h"
#include "planning/planning_spec.h"
#include "train/training_spec.h"

namespace tidepool {
namespace {

Result<Preparation> attempt(Unprepared from, const TrainingSpec& spec, const ProcessMemory& memory,
                            Observer& observer) {
  // An attempt before this one may have left the job in rounds of its choice.
  const std::vector<std::int64_t> offered = std::move(from.subject.offered);
  from.subject = subject_of_job(from.job, spec.job);
  from.subject.may_choose = true;
  JobRounds rounds = from.subject.job_rounds();
  rounds.offered = offered;
  rounds.limit_ops(memory.most_ops());
  BudgetSpec wanted = spec.budget;
  wanted.device = {.bytes = std::max<Bytes>(memory.largest_arena(from.job->alignment()), 0)};
  const auto budget = resolve_budget(wanted, rounds, any_machine(from.job->alignment()));
  if (!budget) return fail(budget.error());
  from.subject.offered = offered.empty() ? offered : sizes_of_few_ops(rounds);
  return prepare(std::move(from), spec, *budget, observer);
}

}  // namespace

Result<Preparation> prepare_in_memory(const Unprepared& from, const TrainingSpec& spec,
                                      ProcessMemory& memory, Observer& observer) {
  const Job& job = *from.job;
  constexpr int kAttempts = 3;
  constexpr Bytes kMoreOfPlanning = 2 * kMiB;
  TrainingSpec now = spec;
  for (int i = 0; i < kAttempts; ++i) {
    auto start = attempt(from, now, memory, observer);
    if (!start && start.error().code == ErrorCode::interrupted && !observer.stop_requested()) {
      constexpr Bytes kForPlanning = 8 * kMiB;
      return fail(memory.explained({ErrorCode::infeasible,
                                    "no plan was found before planning itself took all of it",
                                    memory.largest_arena(job.alignment()) + kForPlanning}));
    }
    if (!start) {
      const bool of_arena = start.error().code == ErrorCode::infeasible && !start.error().of_host;
      return fail(of_arena ? memory.explained(start.error()) : start.error());
    }
    memory.resident = resident_beside_arenas();
    memory.beyond = 0;
    memory.host = start->running().host_bytes();
    memory.hashes = bytes_of_hashes(job, start->running());
    const Bytes left = memory.limit - memory.beside(start->running().device_bytes());
    // Evaluations are planned inside the same.
    start->budget.device = std::min(start->budget.device, memory.largest_arena(job.alignment()));
    // The next time a little less than there seems to be: planning itself takes some of it.
    if (start->running().device_bytes() <= left) return start;
    memory.resident += kMoreOfPlanning;
    now.cache.reprofile = false;  // it was measured a moment ago
  }
  const Bytes arena = memory.largest_arena(job.alignment()) + kMiB;
  return fail(
      memory.explained({ErrorCode::infeasible, "code and heap grew while it was planned", arena}));
}

}  // namespace tidepool
