// The subject of a job: a model on this device, whose ops are measured inside the budget.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "job/job.h"
#include "measure/profiling.h"
#include "planning/subject.h"

namespace tidepool {

/// Before anything is measured: its program has no times, its machine a name and an alignment. The
/// subject shares the job, which makes its programs in other rounds. `asked`: what the job was made
/// of; it may be in rounds by now that nobody stated.
Subject subject_of_job(const std::shared_ptr<Job>& job, const JobSpec& asked);

/// The subject has this machine's links, and is the part of one device where the job has several.
void put_on_machine(const std::shared_ptr<Job>& job, const Machine& machine, Subject& subject);

/// Times of the job in its stated rounds, into both.
Result<void> measure_stated(Job& job, const ProfilingTask& task, const ProfilingSource& source,
                            Subject& subject, Observer& observer);

/// What each size is measured with, from its program without times.
using TaskOfRounds = std::function<Result<ProfilingTask>(const Program& untimed)>;
/// The sizes on offer are measured when they are asked for. Observer and cache must outlive the
/// subject.
void measure_when_asked(const std::shared_ptr<Job>& job, TaskOfRounds task, const Cache& cache,
                        bool reprofile, Subject& subject, Observer& observer);

/// What is measured, and for whom.
struct MeasuredSubjectSpec {
  JobSpec job;
  CacheSpec cache;
  /// This device with its links, where they are known: they are not measured again.
  std::optional<Machine> links{};
  bool choosing = false;    ///< a planner chooses algorithms: the times of all are wanted
  bool may_choose = false;  ///< the caller takes `sub_batch` auto
  /// Where no budget can be met: a subject that was not measured, instead of an error.
  bool unmeasured = false;
};

/// Measured inside the least of the budgets that can be met: as stated where one of them is enough
/// for that, and in the sizes on offer when they are asked for. Observer and cache must outlive it.
Result<Subject> measured_subject(const MeasuredSubjectSpec& spec,
                                 std::span<const BudgetSpec> budgets, const Cache& cache,
                                 Observer& observer);

}  // namespace tidepool
