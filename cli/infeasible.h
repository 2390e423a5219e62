// A budget that cannot be met: what would have been enough.
#pragma once

#include <cstdint>
#include <functional>

#include "job.h"

namespace tidepool::cli {

/// The program of the same job with its batch in rounds of `sub_batch` samples.
using ProgramInRounds = std::function<Result<Program>(std::int64_t sub_batch, bool statistics)>;

/// The same budget, in smaller rounds.
struct SmallerRounds {
  const Program& program;   ///< that cannot run in it
  bool statistics = false;  ///< --sub-batch-statistics is given
  ProgramInRounds in_rounds;
};

SmallerRounds smaller_rounds(const Job& job);

/// resolve_budget, whose error also names the largest of the halved sub-batches with which the
/// budget could be met.
Result<Budget> resolve_budget(const BudgetArguments& arguments, const SmallerRounds& rounds,
                              Bytes alignment);

/// For an error of planning inside a host budget: names the least one with which the planner has a
/// plan. Others are left as they are. Takes some dozen plans.
Error with_least_host_budget(Error error, Planner& planner, const Program& program,
                             const Machine& machine, const Budget& budget, PlannerOptions options);

}  // namespace tidepool::cli
