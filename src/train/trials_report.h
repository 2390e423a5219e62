// Which plans a training tried, or why it tried none.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "job/job.h"
#include "schedule/observation.h"
#include "train/preparation.h"
#include "train/training_spec.h"

namespace tidepool {

/// A plan that ran, and the next that may.
struct TriedPlan {
  std::string planner;         ///< that made it
  bool corrected = false;      ///< ... by what was measured in this training
  Nanos predicted{};           ///< an iteration, by the times of now when it was first tried
  Nanos measured{};            ///< ... at its median; 0: it did not run
  std::size_t iterations = 0;  ///< that were measured
  Nanos low{};                 ///< ... and where the median may lie (spread.h)
  Nanos high{};
};

struct TrialsReport {
  std::string why_none;  ///< in a phrase that names fields of TrainingSpec; empty: plans were tried
  std::vector<TriedPlan> plans;  ///< the one that the training began with first
  std::size_t kept = 0;          ///< which of them it goes on with
  /// An earlier training has tried them: what it measured of the one that this one runs.
  std::optional<TrialFigures> earlier;
  bool cut_short = false;        ///< too few iterations were left for all there was to try
  bool for_next = false;         ///< the next training begins with what came of it
  Observation::Beside slowdown;  ///< of ops by copies, see Note [Time model]
  std::vector<Lateness> late;    ///< by stream, see there

  /// For people, fields in backquotes.
  [[nodiscard]] std::string text() const;
};

/// For a block of the plan that is there, of one more, and of the one that is kept.
inline constexpr std::int64_t kFewestTrialIterations = 12;

/// Why a training tries no plans, in a phrase; empty where it does.
std::string why_not_tried(const TrainingSpec& spec, const Job& job, const Preparation& start);

}  // namespace tidepool
