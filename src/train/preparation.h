// What comes before the first iteration: measure, plan, prove. All of it inside the budget.
#pragma once

#include <optional>

#include "train/job.h"
#include "train/planning.h"
#include "train/profiling.h"
#include "train/proven_gap.h"
#include "train/training_state.h"

namespace tidepool {

/// What a training starts with.
struct Preparation {
  Budget budget;
  Bytes unlimited_peak = 0;  ///< load of the whole batch at once, computed
  Machine machine;
  ProfileSource profile;
  ObtainedPlan plan;
  ProvenGap gap;
  /// An iteration without a budget as predicted, same algorithms, same sub-batch.
  Nanos predicted_unlimited{};
  bool chose_sub_batch = false;  ///< the planner did; the job's program is then of its choice
  /// Where it did: an iteration of the whole batch at once without a budget, with the policy's
  /// algorithms, as predicted; none where that was not measured.
  std::optional<Nanos> predicted_whole;
  std::optional<nn::Checkpoint> checkpoint;  ///< what `resume` names

  [[nodiscard]] const Lowered& lowered() const { return plan.planned.lowered; }
  [[nodiscard]] double predicted_overhead() const;
};

/// Measures the job's ops where no file and no cache has them, plans and proves. `offered`: what
/// the planner chooses its sub-batch from; the job is then in rounds of that. Empty: those it is
/// in.
Result<Preparation> prepare(Job& job, const TrainingSpec& spec, const Budget& budget,
                            const std::vector<std::int64_t>& offered, Planner& planner,
                            Observer& observer);

}  // namespace tidepool
