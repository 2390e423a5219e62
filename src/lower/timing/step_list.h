// StepList: the steps that a time pass issues, with waits by extended positions until all are
// known.
#pragma once

#include <vector>

#include "lower/step.h"
#include "lower/timing_problem.h"

namespace tidepool {

/// What a step waits for: calls, copies out and in of this iteration or, but for `in`, the one
/// before. Extended positions, see timing_problem.h; kNone: nothing. The copies in that host calls
/// wait for are in the problem: the order of those of the iteration before is known at the end.
struct ExtendedWaits {
  std::int32_t call = kNone;
  std::int32_t out = kNone;
  std::int32_t in = kNone;    ///< a position
  std::int32_t host = kNone;  ///< a call
};

/// Allocates nothing once its memory has grown.
class StepList {
 public:
  /// `streams` must outlive it.
  explicit StepList(const StreamTable& streams) : table_(streams) {}

  void clear();
  /// `step.id` is the position of its call, copy-out or copy-in in the problem.
  void add(const Step& step, const ExtendedWaits& waits);
  /// The steps of `problem` with waits by positions in the list, now that all are known, and with
  /// calls and moves for ids.
  void resolve(const TimingProblem& problem, std::vector<Step>& steps);

 private:
  const StreamTable& table_;
  std::vector<Step> steps_;
  std::vector<ExtendedWaits> waits_;
  // Per call, copy-out and copy-in its step; per call the last step of the compute stream up to it.
  std::vector<std::int32_t> call_step_;
  std::vector<std::int32_t> out_step_;
  std::vector<std::int32_t> in_step_;
  std::vector<std::int32_t> compute_step_;
};

}  // namespace tidepool
