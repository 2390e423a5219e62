// Correction: what the plan's instructions take while a training runs corrects the plan, by a
// planner that learns from it (Capuchin), or by planning again where ops take other times than the
// profile says. The corrected plan is proved like any other.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/executor.h"
#include "schedule/observation.h"
#include "train/preparation.h"
#include "train/training_spec.h"

namespace tidepool {

/// Of a training whose planner corrects itself, or whose profile was wrong.
struct CorrectionReport {
  std::string why_none;  ///< in a phrase that names fields of TrainingSpec; empty: it was observed
  int tried = 0;         ///< corrected plans that ran
  int kept = 0;    ///< ... the last of these is the one that the training goes on with; 0: none
  Nanos before{};  ///< median of an iteration of the first plan
  Nanos after{};   ///< ... of the plan that the training goes on with

  /// For people, fields in backquotes.
  [[nodiscard]] std::string text() const;
};

// Note [Correction]. Every plan trains to the same bits, so a corrected one is tried, not judged by
// a prediction whose times were wrong. A plan runs for some iterations, is corrected by what they
// took, and its successor runs as many; this ends where the planner changes nothing, after kMost
// corrections, or with a plan that takes longer than the one before it, to which the training then
// goes back. All run the same algorithms, on which bits depend, inside the same budget.
//
// A profile from the cache or a file may be of a busy machine. Where ops take other times
// (op_times.h) people are told, the times measured now take its place, in the cache too, and any
// planner has one more try with them; a profile from a file stays as it is, but what is predicted
// is by the measured times then.
//
// With `iterations` the plan changes after kIterations. With `epochs` it changes between them: the
// state is handed over there anyway, and more iterations say which plan is faster.

class Correction {
 public:
  static constexpr std::int64_t kIterations = 5;  ///< that are observed; the first is not measured
  static constexpr int kMost = 4;                 ///< plans tried

  /// Of a training that begins with `start`. All must outlive it. The job's program gets other
  /// times where the profile was wrong.
  Correction(Job& job, const TrainingSpec& spec, Planner& planner, Preparation& start,
             Observer& observer);

  /// Whether the next iterations should be observed.
  [[nodiscard]] bool observes() const { return !settled_; }
  /// After iterations of the plan in `start`: their recorded times, and the median of an iteration.
  /// `more`: there are enough left to try another plan. Whether `start` has another plan now, to go
  /// on with from here. Fails where the planner does, but for want of memory or when interrupted.
  Result<bool> follow(const std::vector<std::vector<OpTiming>>& timings, Nanos time, bool more);
  /// None where the planner does not correct itself and the profile was right.
  [[nodiscard]] const std::optional<CorrectionReport>& report() const { return report_; }

 private:
  struct Earlier {
    ObtainedPlan plan;
    ProvenGap gap;
  };

  void judge_profile(const Observation& observation);
  Result<bool> try_another();

  Job& job_;
  const TrainingSpec& spec_;
  Planner& planner_;
  Preparation& start_;
  Observer& observer_;
  bool learns_ = false;         ///< the planner corrects itself
  bool profile_known_ = false;  ///< whether it is right
  bool may_try_ = false;        ///< another plan; nothing of why_not_corrected
  bool settled_ = true;
  std::optional<CorrectionReport> report_;
  std::vector<Observation> observations_;  ///< of each plan until now
  std::optional<Earlier> best_;            ///< the plan before the one that is tried
};

/// Why the plan of a training is not corrected, in a phrase; empty where it is.
std::string why_not_corrected(const TrainingSpec& spec, const Job& job, const Preparation& start);

}  // namespace tidepool
