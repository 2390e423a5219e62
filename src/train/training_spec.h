// TrainingSpec: what to train, on what, inside which budget. Plain data; `run_training` (train.h)
// does what it says. Messages of this library name the fields of these structs in backquotes.
#pragma once

#include <cstdint>
#include <string>

#include "job/job_spec.h"
#include "planning/planning_spec.h"

namespace tidepool {

/// What a training is compared with: the same training without a budget, which runs in turn with it
/// and needs the memory for that.
enum class Comparison : std::uint8_t {
  none,
  times,  ///< what the budget costs, measured
  bits,   ///< that, and losses and all weights bit for bit
};

struct TrainingSpec {
  JobSpec job;
  BudgetSpec budget;
  PlannerSpec planner;
  CacheSpec cache;
  std::string profile;  ///< a profile file of this device instead of measuring; may be empty
  std::string plan;     ///< a plan file of this device instead of planning; may be empty
  bool trials = true;   ///< other plans are tried where the fastest is wanted, see trials.h

  std::int64_t iterations = 10;  ///< where `epochs` is 0
  std::int64_t epochs = 0;       ///< above 0: this many, the earlier runs of `resume` included

  // With iterations.
  Comparison comparison = Comparison::none;
  std::int64_t graph = 0;  ///< iterations captured in one graph, on devices that do so; 0: none

  // With epochs.
  bool evaluate = true;    ///< on the test split, after each
  std::string checkpoint;  ///< a file written after every epoch and when stopped; empty: `resume`
  std::string resume;      ///< a checkpoint to go on from, bit for bit; may be empty
  bool overwrite = false;  ///< `checkpoint` may replace one that the training does not go on from
};

}  // namespace tidepool
