// Budgets as users give them: what they come to, whether they can be met, and what would have been
// enough.
#pragma once

#include "planning/planning_spec.h"
#include "planning/rounds.h"

namespace tidepool {

/// Peak load of a program without a budget, least-workspace algorithms. Computed.
Bytes unlimited_peak(const Program& program, Bytes alignment);

/// Resolves "60%", of the peak of the whole batch, and checks that the budget can be met at all: by
/// the program, or by one of the sizes offered. An error about the program also names the largest
/// of the halved sub-batches with which the budget could be met; those with more than kMostOps ops
/// are not looked at.
Result<Budget> resolve_budget(const BudgetSpec& spec, const JobRounds& rounds,
                              const Machine& machine);

}  // namespace tidepool
