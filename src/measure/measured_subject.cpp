#include "measure/measured_subject.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "job/offered_rounds.h"
#include "lower/lower.h"
#include "measure/expected_memory.h"
#include "measure/link_speed.h"
#include "planning/budget.h"

namespace tidepool {
namespace {

SubjectDevices::Shared devices_program(const Job& job) {
  return std::make_shared<const DevicesProgram>(
      DevicesProgram{job.parallel()->whole.program, job.parallel()->replication});
}

/// The least of the budgets that can be met; an error where none can.
Result<Budget> least_feasible(const JobRounds& rounds, std::span<const BudgetSpec> budgets,
                              Bytes alignment) {
  Result<Budget> least = fail(ErrorCode::usage, "give a budget");
  JobRounds quick = rounds;
  // What smaller rounds would do is worth finding out only where this is the answer.
  quick.suggest = budgets.size() == 1;
  for (const BudgetSpec& spec : budgets) {
    auto budget = resolve_budget(spec, quick, any_machine(alignment));
    if (!budget && budget.error().code != ErrorCode::infeasible) return budget;
    if (budget && (!least || budget->device < least->device)) least = budget;
    if (!budget && !least) least = budget;
  }
  return least;
}

/// The budget of the arena in that of the process.
Result<BudgetSpec> arena_in_memory(const Job& job, const BudgetSpec& budget, Subject& subject) {
  const auto limit = memory_of(budget.memory);
  if (!limit) return fail(limit.error());
  const auto memory = expected_memory(job, *limit);
  if (!memory) return fail(memory.error());
  subject.memory = *memory;
  BudgetSpec arena = budget;
  arena.device = {.bytes = subject.device_bytes(budget)};
  return arena;
}

void offer_few_ops(JobRounds rounds, Subject& subject) {
  if (subject.offered.empty()) return;
  rounds.offered = subject.offered;
  subject.offered = sizes_of_few_ops(rounds);
}

/// Inside the least of the budgets that can be met with a size.
TaskOfRounds least_feasible_task(const std::shared_ptr<Job>& job, bool all_algorithms,
                                 std::span<const BudgetSpec> budgets, Bytes alignment) {
  return [=, budgets = std::vector(budgets.begin(), budgets.end())](
             const Program& untimed) -> Result<ProfilingTask> {
    const auto budget = least_feasible(
        {untimed, job->spec().sub_batch_statistics, rounds_of(*job).in_rounds}, budgets, alignment);
    if (!budget) return fail(budget.error());
    return ProfilingTask{kProfileIterations, all_algorithms, *budget};
  };
}

}  // namespace

Subject subject_of_job(const std::shared_ptr<Job>& job, const JobSpec& asked) {
  Subject subject;
  subject.profile = {job->fingerprint(), job->program(), {}};
  subject.profile.machine.name = job->kind().name;
  subject.profile.machine.set_alignment(job->alignment());
  subject.terms = plan_terms(asked);
  subject.statistics = job->spec().sub_batch_statistics;
  subject.in_rounds = [job](std::int64_t sub_batch, bool statistics) {
    return job->in_rounds(sub_batch, statistics);
  };
  subject.batch_norm = job->rounds_change_training();
  subject.offered = offered_sizes(asked, subject.batch_norm);
  if (job->parallel() == nullptr) return subject;
  subject.devices.emplace();
  subject.devices->naive = job->spec().accumulation == Accumulation::naive;
  subject.devices->program = devices_program(*job);
  subject.devices->in_rounds = [job](std::int64_t sub_batch) -> Result<SubjectDevices::Shared> {
    if (auto rebuilt = job->set_rounds(sub_batch); !rebuilt) return fail(rebuilt.error());
    return devices_program(*job);
  };
  return subject;
}

void put_on_machine(const std::shared_ptr<Job>& job, const Machine& machine, Subject& subject) {
  subject.profile.machine = machine;
  if (!subject.devices) return;
  SubjectDevices devices = std::move(*subject.devices);
  devices.machine = machine;
  share_between(job->spec().devices, std::move(devices), subject);
}

Result<void> measure_stated(Job& job, const ProfilingTask& task, const ProfilingSource& source,
                            Subject& subject, Observer& observer) {
  const auto obtained = obtain_profile(job, subject.profile.machine, task, source, observer);
  if (!obtained) return fail(obtained.error());
  subject.profile.program = job.program();
  subject.source = *obtained;
  return {};
}

void measure_when_asked(const std::shared_ptr<Job>& job, TaskOfRounds task, const Cache& cache,
                        bool reprofile, Subject& subject, Observer& observer) {
  const std::optional<std::int64_t> known =
      subject.source ? std::optional(job->program().sub_batch) : std::nullopt;
  subject.sources = std::make_shared<Subject::Sources>();
  subject.rounds = std::make_shared<RoundsWorkload>(
      subject.offered,
      [job, task = std::move(task), known, reprofile, machine = subject.profile.machine,
       sources = subject.sources, &cache, &observer](std::int64_t sub_batch) -> Result<Program> {
        if (known == sub_batch) return job->program();
        const auto untimed = job->in_rounds(sub_batch, job->spec().sub_batch_statistics);
        if (!untimed) return fail(untimed.error());
        const auto mine = task(*untimed);
        if (!mine) return fail(mine.error());
        auto timed =
            profile_in_rounds(*job, sub_batch, machine, *mine, {cache, reprofile, {}}, observer);
        if (!timed) return fail(timed.error());
        (*sources)[sub_batch] = timed->source;
        return std::move(timed->program);
      });
}

Result<Subject> measured_subject(const MeasuredSubjectSpec& spec,
                                 std::span<const BudgetSpec> budgets, const Cache& cache,
                                 Observer& observer) {
  auto made = Job::make(spec.job, observer);
  if (!made) return fail(made.error());
  const auto job = std::make_shared<Job>(std::move(*made));
  Subject subject = subject_of_job(job, spec.job);
  JobRounds rounds = rounds_of(*job);
  rounds.may_choose = spec.may_choose;
  std::optional<BudgetSpec> arena;
  if (budgets.size() == 1 && budgets[0].memory.given()) {
    auto in_memory = arena_in_memory(*job, budgets[0], subject);
    if (!in_memory) return fail(in_memory.error());
    arena = *in_memory;
    budgets = std::span(&*arena, 1);
    rounds.limit_ops(subject.memory->most_ops());
    offer_few_ops(rounds, subject);
  }
  const Bytes alignment = job->alignment();
  const auto stated = least_feasible(rounds, budgets, alignment);
  rounds.offered = subject.offered;
  const auto budget = subject.offered.empty() ? stated : least_feasible(rounds, budgets, alignment);
  if (!budget && spec.unmeasured && budget.error().code == ErrorCode::infeasible) return subject;
  if (!budget) return fail(subject.of_whole(budget.error()));
  const auto machine = spec.links ? Result<Machine>(*spec.links)
                                  : device_machine(*job, *budget, spec.cache, observer);
  if (!machine) return fail(machine.error());
  put_on_machine(job, *machine, subject);
  const bool all = subject.terms.plans_all_algorithms(spec.choosing);
  if (stated) {
    const auto measured = measure_stated(*job, {kProfileIterations, all, *stated},
                                         {cache, spec.cache.reprofile, {}}, subject, observer);
    if (!measured) return fail(measured.error());
  }
  if (!subject.offered.empty()) {
    measure_when_asked(job,
                       least_feasible_task(job, all, budgets, subject.profile.machine.alignment()),
                       cache, spec.cache.reprofile, subject, observer);
  }
  return subject;
}

}  // namespace tidepool
