#include "measure/fit_batches.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "planning/batch_profiles.h"

namespace tidepool {
namespace {

/// Rounds are no larger than the batch.
SubjectSpec with_batch(SubjectSpec a, std::int64_t batch) {
  a.job.batch = batch;
  a.job.sub_batch = std::min(a.job.sub_batch, batch);
  return a;
}

/// Of a batch, without a budget: it is not measured.
Result<Program> program_of(const SubjectSpec& a, std::int64_t batch, const Cache& cache,
                           Observer& observer) {
  if (a.machine.empty()) {
    const auto job = Job::make(with_batch(a, batch).job, observer);
    if (!job) return fail(job.error());
    return job->program();
  }
  auto subject = subject_of(with_batch(a, batch), BudgetSpec{}, cache, observer);
  if (!subject) return fail(subject.error());
  return std::move(subject->profile.program);
}

/// Name, memory and alignment of what is planned for, and the most samples it has.
struct Place {
  std::string name;
  Bytes alignment = 0;
  Bytes memory = 0;  ///< 0: not known
  std::int64_t samples = std::numeric_limits<std::int64_t>::max();
};

Result<Place> place_of(const SubjectSpec& a, Observer& observer) {
  if (!a.machine.empty()) {
    const auto machine = find_machine(a.machine);
    if (!machine) return fail(machine.error());
    return Place{machine->name, machine->alignment(), machine->device_memory()};
  }
  const auto job = Job::make(with_batch(a, 1).job, observer);
  if (!job) return fail(job.error());
  return Place{job->kind().name, job->alignment(), 0, job->data().size()};
}

Result<Budget> fit_budget(const FitSpec& a, const Place& place) {
  if (a.budget.device.percent >= 0) {
    return fail(ErrorCode::usage,
                "`budget`: give bytes, such as 400MiB; the peak that a percentage refers to is "
                "another for every batch");
  }
  if (a.budget.limited()) return Budget{a.budget.device.bytes, a.budget.host};
  if (place.memory > 0) return Budget{place.memory, a.budget.host};
  return fail(ErrorCode::usage,
              fmt::format("give a `budget`: how much memory '{}' has is not known", place.name));
}

/// What no search is needed for.
Result<void> know_limits(const ProgramOfBatch& program, const Budget& budget, Bytes alignment,
                         std::int64_t most, const Stop& stop, FitReport& known,
                         ProgressSink& searches) {
  searches.update(0, "which batches the budget can train at all");
  const auto possible = largest_possible(program, budget.device, alignment, most, stop);
  if (!possible) return fail(possible.error());
  known.possible = *possible;
  searches.update(0, "which batches need no search");
  const auto unplanned = fit_unplanned(program, budget, alignment, possible->batch, stop);
  if (!unplanned) return fail(unplanned.error());
  known.unplanned = *unplanned;
  return {};
}

}  // namespace

Result<void> fit_batches(const FitSpec& a, const Stop& stop, FitReport& known,
                         ProgressSink& searches, Observer& observer) {
  const Cache cache(a.subject.cache, observer);
  const auto place = place_of(a.subject, observer);
  if (!place) return fail(place.error());
  const auto budget = fit_budget(a, *place);
  if (!budget) return fail(budget.error());
  const std::int64_t most = std::min(a.most, place->samples);
  known.machine = place->name;
  known.budget = budget->device;
  known.host_budget = budget->host;
  known.all_samples = most < a.most;
  const std::int64_t sub_batch = a.subject.job.sub_batch;
  std::int64_t ops = 0;  // of a round
  const ProgramOfBatch program = [&](std::int64_t batch) -> Result<Program> {
    // In rounds any batch fits that one round does: what ends it is the length of the program.
    if (ops > 0 && batch / sub_batch * ops > kMostOps) {
      return fail(ErrorCode::usage, fmt::format("in rounds of {} its program has more than {} ops",
                                                sub_batch, kMostOps));
    }
    auto made = program_of(a.subject, batch, cache, observer);
    if (made && sub_batch > 0) ops = static_cast<std::int64_t>(made->ops.size()) / made->rounds();
    return made;
  };
  if (auto limited = know_limits(program, *budget, place->alignment, most, stop, known, searches);
      !limited) {
    return limited;
  }
  const BudgetSpec spec{{.bytes = budget->device}, budget->host};
  const bool measures = a.subject.machine.empty();
  SubjectSpec arguments = a.subject;
  BatchProfiles profiles(
      [&](std::int64_t batch) -> Result<Profile> {
        auto subject = subject_of(with_batch(arguments, batch), spec, cache, observer);
        if (!subject) return fail(subject.error());
        if (measures) arguments.links = subject->profile.machine;
        return std::move(subject->profile);
      },
      measures ? program : ProgramOfBatch{});
  PlannerOptions options = planner_options(plan_terms(a.subject.job), a.planner);
  options.stop = stop;
  const TryBatch try_batch = [&](std::int64_t batch, bool estimate) -> Result<FitTrial> {
    const auto profile = profiles.profile(batch, estimate);
    if (!profile) return fail(profile.error());
    auto trial = try_plan(*profile->profile, *budget, a.planner.name, options);
    if (trial) trial->estimated = profile->estimated;
    return trial;
  };
  const auto learn = [&](const FitFound& found) {
    known.found = found;
    known.links = arguments.links;
    if (measures) known.measured = profiles.measured();
  };
  auto found = find_fit(try_batch, {known.possible->batch, a.resolution, stop, learn}, searches);
  if (!found) return fail(found.error());
  learn(*found);
  return {};
}

}  // namespace tidepool
