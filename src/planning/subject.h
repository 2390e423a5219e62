// Subject: what to plan for. A model on a preset or measured on this device, a profile, a program
// or a recorded trace become one; all that follows (planner_work.h, plan_subject.h, comparison.h)
// asks the subject and never where it came from.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "cost/profile.h"
#include "ir/replication.h"
#include "planners/workload.h"
#include "planning/measurement.h"
#include "planning/parallel_plan.h"
#include "planning/planning_spec.h"
#include "planning/process_memory.h"
#include "planning/rounds.h"
#include "planning/rounds_of_plan.h"

namespace tidepool {

/// The program of several devices, without times, of which each runs its part.
struct DevicesProgram {
  Program whole;
  Replication replication;
};

/// Of a subject for several devices: the subject itself is the part of one of them.
struct SubjectDevices {
  using Shared = std::shared_ptr<const DevicesProgram>;
  Machine machine;  ///< of all of them
  Shared program;
  bool naive = false;  ///< accumulation
  /// The same in rounds of another size.
  std::function<Result<Shared>(std::int64_t sub_batch)> in_rounds;
  /// An iteration of the whole batch on one device without a budget; none: not known.
  std::optional<Nanos> alone{};
};

struct Subject {
  /// Its program is in the rounds that are stated, its machine as one device has it. The program
  /// has no times where nothing was measured, or no budget is enough for it as it is.
  Profile profile;
  PlanTerms terms{};
  std::optional<ProfileSource> source{};  ///< none: the times are a file's or a compute model's
  /// Of a trace: device bytes that are always taken and that the program does not know of. Planners
  /// get the budget without them; reports count them.
  Bytes resident = 0;

  bool statistics = false;      ///< rounds may take their own batch statistics
  ProgramInRounds in_rounds{};  ///< empty where the program is as it is
  bool batch_norm = false;      ///< rounds take statistics of their own
  /// What planners choose from that do, the largest first; empty: there is nothing to choose.
  std::vector<std::int64_t> offered{};
  /// Of these. A device measures each when it is asked for. Null where nothing is offered.
  std::shared_ptr<RoundsWorkload> rounds{};
  using Sources = std::map<std::int64_t, ProfileSource>;  ///< by sub-batch
  /// Of those that were measured when they were asked for; null where nothing is measured then.
  std::shared_ptr<Sources> sources{};
  bool may_choose = false;  ///< errors of budgets may recommend `sub_batch` auto

  std::optional<SubjectDevices> devices{};  ///< none: there is one device
  /// Of a budget of the whole process: what it leaves for the arena.
  std::optional<ProcessMemory> memory{};

  /// As `resolve_budget` takes it; `stated`: without the sizes on offer.
  [[nodiscard]] JobRounds job_rounds(bool stated = false) const;
  /// Of all devices; nothing where there is one. The subject must outlive it.
  [[nodiscard]] std::optional<ParallelProgram> parallel_program() const;
  /// What percentages refer to, with the resident bytes.
  [[nodiscard]] Bytes unlimited_peak() const;
  /// Without a budget: of a plan for `program`, or of the whole batch where that is faster and
  /// known.
  [[nodiscard]] Nanos unlimited_time(const Program& program, AlgorithmPolicy policy) const;
  /// Of a plan for `program`.
  [[nodiscard]] RoundsOfPlan rounds_of(const Program& program, AlgorithmPolicy policy) const;

  /// The device bytes that are asked for, without the resident ones.
  [[nodiscard]] Bytes device_bytes(const BudgetSpec& spec) const;
  /// The budget of the plan: what is asked for, without the resident bytes. It can be met by some
  /// size on offer; `stated`: by the profile's program.
  [[nodiscard]] Result<Budget> budget_of(BudgetSpec spec, bool stated = false) const;
  /// An error of planning beside resident bytes, or inside the memory of a process, in terms of the
  /// whole.
  [[nodiscard]] Error of_whole(Error error) const;
};

/// The subject becomes the part of one of several devices, each with its part of their bus.
/// `devices.machine` is that of one device and becomes that of all.
void share_between(std::int32_t count, SubjectDevices devices, Subject& subject);

/// Refuses what no schedule can run, and leaves out algorithms that take more workspace.
Result<void> finish_subject(Subject& subject, Bytes workspace_limit);

}  // namespace tidepool
