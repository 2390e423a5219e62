#pragma once

#include "planners/planner.h"
#include "planners/toolkit/swap_candidates.h"

namespace tidepool {

struct AutoSwapOptions {
  Bytes smallest = SwapCandidates::kSmallest;  ///< candidates are at least this large
  int weight_evaluations = 32;                 ///< of BO, after those of the four scores; 0: no BO
  std::vector<std::int32_t> algorithms{};      ///< one per op; empty: the policy's
};

/// AutoSwap with the best of the four scores and, where they leave overhead, their best combination
/// (BO). Selection and packing are repeated under tighter load limits until the footprint meets the
/// budget.
std::unique_ptr<Planner> make_autoswap();
std::unique_ptr<Planner> make_autoswap(const AutoSwapOptions& options);

}  // namespace tidepool
