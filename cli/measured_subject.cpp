#include "measured_subject.h"

#include <algorithm>
#include <vector>

#include "job/job.h"
#include "job/offered_rounds.h"
#include "measure/expected_memory.h"
#include "measure/link_speed.h"
#include "measure/profiling_task.h"
#include "planning/parallel_plan.h"
#include "planning/planning_spec.h"

namespace tidepool::cli {
namespace {

/// The least of the budgets that can be met; an error where none can.
Result<Budget> least_feasible(const JobRounds& rounds, std::span<const BudgetSpec> budgets,
                              Bytes alignment) {
  Result<Budget> least = fail(ErrorCode::usage, "give a budget");
  JobRounds quick = rounds;
  // What smaller rounds would do is worth finding out only where this is the answer.
  quick.suggest = budgets.size() == 1;
  for (const BudgetSpec& spec : budgets) {
    auto budget = resolve_budget(spec, quick, alignment);
    if (!budget && budget.error().code != ErrorCode::infeasible) return budget;
    if (budget && (!least || budget->device < least->device)) least = budget;
    if (!budget && !least) least = budget;
  }
  return least;
}

/// Measures a job in rounds of any size, each inside the least of the budgets that can be met with
/// it. The observer and the cache must outlive it.
RoundsWorkload::Make measured_rounds(const std::shared_ptr<Job>& job, const Machine& machine,
                                     const SubjectArguments& a, std::span<const BudgetSpec> budgets,
                                     bool measured, const Cache& cache, Observer& observer) {
  return [=, budgets = std::vector(budgets.begin(), budgets.end()), reprofile = a.cache.reprofile,
          all = plans_all_algorithms(a.job, a.choosing), &cache,
          &observer](std::int64_t sub_batch) -> Result<Program> {
    if (measured && sub_batch == job->program().sub_batch) return job->program();
    const bool statistics = job->spec().sub_batch_statistics;
    const auto untimed = job->in_rounds(sub_batch, statistics);
    if (!untimed) return fail(untimed.error());
    const auto in_rounds = rounds_of(*job).in_rounds;
    const auto budget =
        least_feasible({*untimed, statistics, in_rounds}, budgets, machine.alignment());
    if (!budget) return fail(budget.error());
    auto timed = profile_in_rounds(*job, sub_batch, machine, {kProfileIterations, all, *budget},
                                   {cache, reprofile, {}}, observer);
    if (!timed) return fail(timed.error());
    return std::move(timed->program);
  };
}

/// The subject's machine becomes that of one device with its part of the bus.
void add_devices(const std::shared_ptr<Job>& job, Subject& subject) {
  subject.parallel = {job, job->parallel()};
  subject.parallel_in_rounds = [job](std::int64_t sub_batch) -> Result<Subject::SharedParallel> {
    if (auto rebuilt = job->set_rounds(sub_batch); !rebuilt) return fail(rebuilt.error());
    return Subject::SharedParallel{job, job->parallel()};
  };
  subject.all = machine_of_devices(subject.profile.machine, job->spec().devices);
  subject.profile.machine = one_of_devices(*subject.all);
}

/// The budget of the arena in that of the process.
Result<BudgetSpec> arena_in_memory(const Job& job, const BudgetSpec& budget, Subject& subject) {
  const auto limit = memory_of(budget.memory);
  if (!limit) return fail(limit.error());
  const auto memory = expected_memory(job, *limit);
  if (!memory) return fail(memory.error());
  subject.memory = *memory;
  BudgetSpec arena = budget;
  arena.device = {.bytes = device_bytes(budget, subject)};
  return arena;
}

void offer_few_ops(JobRounds rounds, Subject& subject) {
  if (subject.offered.empty()) return;
  rounds.offered = subject.offered;
  subject.offered = sizes_of_few_ops(rounds);
}

}  // namespace

Result<Subject> measured_subject(const SubjectArguments& a, std::span<const BudgetSpec> budgets,
                                 const Cache& cache, Observer& observer) {
  auto made = Job::make(a.job, observer);
  if (!made) return fail(made.error());
  // Lives on in the subject, for programs of other rounds.
  const auto job = std::make_shared<Job>(std::move(*made));
  JobRounds rounds = rounds_of(*job);
  rounds.may_choose = a.may_choose;
  const auto in_rounds = [job](std::int64_t sub_batch, bool statistics) {
    return job->in_rounds(sub_batch, statistics);
  };
  Subject subject{{job->fingerprint(), job->program(), {}},
                  {},
                  0,
                  a.job.sub_batch_statistics,
                  in_rounds,
                  job->rounds_change_training(),
                  offered_sizes(a.job, job->rounds_change_training())};
  subject.profile.machine.name = job->kind().name;
  subject.profile.machine.set_alignment(job->alignment());
  std::optional<BudgetSpec> arena;
  if (budgets.size() == 1 && budgets[0].memory.given()) {
    auto in_memory = arena_in_memory(*job, budgets[0], subject);
    if (!in_memory) return fail(in_memory.error());
    arena = *in_memory;
    budgets = std::span(&*arena, 1);
    rounds.limit_ops(subject.memory->most_ops());
    offer_few_ops(rounds, subject);
  }
  const auto stated = least_feasible(rounds, budgets, job->alignment());
  rounds.offered = subject.offered;
  const auto budget =
      subject.offered.empty() ? stated : least_feasible(rounds, budgets, job->alignment());
  if (!budget && a.unmeasured && budget.error().code == ErrorCode::infeasible) return subject;
  if (!budget) return fail(with_resident(budget.error(), subject));
  const auto machine =
      a.links ? Result<Machine>(*a.links) : device_machine(*job, *budget, a.cache, observer);
  if (!machine) return fail(machine.error());
  subject.profile.machine = *machine;
  if (job->parallel() != nullptr) add_devices(job, subject);
  const Machine& on = subject.profile.machine;
  if (stated) {
    const bool all = plans_all_algorithms(a.job, a.choosing);
    const auto source = obtain_profile(*job, on, {kProfileIterations, all, *stated},
                                       {cache, a.cache.reprofile, {}}, observer);
    if (!source) return fail(source.error());
    subject.profile.program = job->program();
    subject.source = *source;
  }
  if (!subject.offered.empty()) {
    subject.rounds = std::make_shared<RoundsWorkload>(
        subject.offered, measured_rounds(job, on, a, budgets, stated.has_value(), cache, observer));
  }
  return subject;
}

}  // namespace tidepool::cli
