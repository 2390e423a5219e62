// What `auto` chose, in one line, and what each freedom was worth.
#pragma once

#include <string>

#include "lower/lower.h"
#include "planners/planner_context.h"

namespace tidepool {

/// The fastest iterations found that do without a freedom. Nanos::max(): none fits the budget.
struct TimesWithout {
  Nanos sub_batch = Nanos::max();   ///< in rounds of `usual_sub_batch` samples
  Nanos algorithms = Nanos::max();  ///< with the least workspaces, of the chosen sub-batch
  Nanos recompute = Nanos::max();   ///< of the chosen sub-batch
  std::int64_t usual_sub_batch = 0;
};

/// Ops that run another algorithm than the one of least workspace.
std::int64_t other_algorithms(const Program& program, const Strategy& strategy);
/// Gaps so decided.
std::int64_t decided(const Strategy& strategy, Decision decision);

/// "sub-batch 32 of 128 (whole batch: up to +41 %), 18 of 52 ops with another algorithm than least
/// workspace (without: up to +63 %), 7 recomputed (without: up to +4.0 %), 120 swapped; percentages
/// are of the iteration time, quick estimates by short searches": only what there is.
std::string choices_note(const Program& program, const Lowered& plan, const TimesWithout& without);

}  // namespace tidepool
