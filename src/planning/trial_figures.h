// What a training found out of the plan that it kept, of those that it tried.
#pragma once

#include "base/json_fwd.h"
#include "base/time.h"
#include "planning/proven_gap.h"

namespace tidepool {

/// All that is predicted is by the times that were measured while plans ran.
struct TrialFigures {
  Nanos predicted{};            ///< an iteration
  Nanos unlimited{};            ///< ... without a budget
  Nanos fastest_unlimited{};    ///< ... with the fastest algorithm of each op
  ProvenGap gap{};              ///< of `predicted`
  Nanos measured{};             ///< of an iteration, at its median
  std::int64_t iterations = 0;  ///< that were measured
  bool finished = true;         ///< all was tried that there was to try
};

Json to_json(const TrialFigures& figures);
TrialFigures trial_figures_from_json(const JsonCursor& json);

}  // namespace tidepool
