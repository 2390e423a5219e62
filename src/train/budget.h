// Budgets as users give them: what they come to, whether they can be met, and what would have been
// enough.
#pragma once

#include <cstdint>
#include <functional>

#include "train/job.h"

namespace tidepool {

/// Peak load without a budget, least-workspace algorithms: what percentages refer to. Computed.
Bytes unlimited_peak(const Program& program, Bytes alignment);

/// More than any program needs.
Budget no_limit();
/// Of the device's bytes.
bool limited(const Budget& budget);

/// Resolves "60%" and checks that the budget can be met at all.
Result<Budget> resolve_budget(const BudgetSpec& spec, const Program& program, Bytes alignment);

/// The program of the same job with its batch in rounds of `sub_batch` samples.
using ProgramInRounds = std::function<Result<Program>(std::int64_t sub_batch, bool statistics)>;

/// The same budget, in smaller rounds.
struct SmallerRounds {
  const Program& program;   ///< that cannot run in it
  bool statistics = false;  ///< rounds may take their own batch statistics
  ProgramInRounds in_rounds;
};

SmallerRounds smaller_rounds(const Job& job);

/// resolve_budget, whose error also names the largest of the halved sub-batches with which the
/// budget could be met. Those with more than some 100,000 ops are not looked at.
Result<Budget> resolve_budget(const BudgetSpec& spec, const SmallerRounds& rounds, Bytes alignment);

}  // namespace tidepool
