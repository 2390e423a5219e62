// What comes before the first iteration: measure, plan, prove. All of it inside the budget.
#pragma once

#include <memory>
#include <optional>

#include "job/job.h"
#include "planning/plan_subject.h"
#include "train/disk_drift.h"
#include "train/time_model.h"
#include "train/training_spec.h"
#include "train/training_state.h"

namespace tidepool {

/// What a training starts with.
struct Preparation {
  Budget budget;
  Budget asked;  ///< for its plan; more than `budget` where `memory` left less than expected
  Bytes unlimited_peak = 0;  ///< load of the whole batch at once, computed; of one device's part
  Machine machine;  ///< as one device has it; where there are several, with its part of their bus
  ProfileSource profile;
  ObtainedPlan plan;                     ///< of one device
  std::optional<ParallelPlan> parallel;  ///< of all devices, where there are several
  ProvenGap gap;
  /// An iteration without a budget as predicted (overhead.h), with the fastest algorithms and
  /// rounds that the planner may choose.
  Nanos predicted_unlimited{};
  /// The same with the fastest algorithm of each op, where those that plans may not choose were
  /// measured too.
  Nanos fastest_unlimited{};
  /// An iteration by what was measured while plans ran (time_model.h), where trials did that; the
  /// gap and the times without a budget are by the same then. The plan's own time stays that of the
  /// profile.
  std::optional<Nanos> now;
  bool chose_sub_batch = false;  ///< the planner did; the job's program is then of its choice
  /// Where it did: an iteration of the whole batch at once without a budget, with the best
  /// algorithms that the planner may choose, as predicted; none where that was not measured.
  std::optional<Nanos> predicted_whole;
  std::optional<nn::CheckpointFile> checkpoint;  ///< what `resume` names

  /// Of one device.
  [[nodiscard]] const Lowered& lowered() const { return plan.planned.lowered; }
  /// What runs, where, and how long an iteration is expected to take.
  [[nodiscard]] const Plan& running() const { return parallel ? parallel->plan : lowered().plan; }
  [[nodiscard]] const Machine& running_on() const { return parallel ? parallel->machine : machine; }
  [[nodiscard]] Nanos iteration_time() const {
    return parallel ? parallel->iteration_time : now.value_or(lowered().iteration_time);
  }
  [[nodiscard]] double predicted_overhead() const;
};

/// Whether an iteration of the plan takes at most 1 % more on a disk of these speeds than without a
/// budget: another plan could gain no more than that.
bool hides_copies(const Job& job, const DiskChange& disk, const Preparation& start);

/// Plans again for a disk of other speeds, in the same rounds and with the same algorithms:
/// training goes on bit for bit. Where it fails `start` is as it was.
Result<void> plan_for_disk(const Job& job, const TrainingSpec& spec, const DiskChange& disk,
                           Planner& planner, Preparation& start, Observer& observer);

/// When the times of the job's program have changed, all together by `factor`: what its plan is
/// expected to take, and what plans are compared with. For one device.
void predict_again(const Job& job, double factor, Preparation& start);

/// All that is said of the plan's time is by this model from here on, the gap too: linear programs
/// take up to the planner's time limit once more. For one device. Fails where the gap does.
Result<void> predict_by(const TimeModel& now, const Job& job, const TrainingSpec& spec,
                        Preparation& start, Observer& observer);

/// The plan of all devices of a job with several, from a plan of one of them.
Result<ParallelPlan> parallel_plan(const Job& job, const Plan& part, const Machine& machine,
                                   const Budget& budget);

/// What the preparation starts from, beside the spec.
struct Unprepared {
  std::shared_ptr<Job> job;
  /// Nothing of it is measured. Where sizes are on offer the planner chooses, and the job is in
  /// rounds of that size afterwards.
  Subject subject;
  const SavedPlan* saved = nullptr;  ///< to run instead of planning; may be null
};

/// Measures the job's ops where no file and no cache has them, plans and proves.
Result<Preparation> prepare(Unprepared from, const TrainingSpec& spec, const Budget& budget,
                            Observer& observer);

}  // namespace tidepool
