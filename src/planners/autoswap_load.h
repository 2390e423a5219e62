// AutoSwap under a limit on the memory load alone, as the paper evaluates it (section VI-B): no
// addresses. The planner `autoswap` adds those.
//
// A selection is plain when it is made for the limit itself, which is what the paper does. Copies
// take time to leave, so a plain selection can stall where one for a tighter limit does not.
#pragma once

#include <cstdint>
#include <functional>

#include "plan/evaluate.h"
#include "planners/swap_candidates.h"

namespace tidepool {

/// What counts as no overhead: a thousandth of the iteration.
inline constexpr double kNoOverhead = 1e-3;

/// A selection and what it costs.
struct LoadedSelection {
  SwapWeights weights{};
  Bytes selected_for = 0;  ///< the limit up to which gaps were picked
  SwapSelection selection;
  Evaluation evaluation;  ///< under the load limit
};

/// The plain selection by one combination.
LoadedSelection select_under_load(Evaluator& evaluator, const SwapCandidates& candidates,
                                  const SwapWeights& weights, Bytes limit);

struct WeightSearchOptions {
  int evaluations = 32;  ///< after those of the four scores
  std::uint64_t seed = 1;
  std::function<bool()> cancelled;  ///< may be empty
};

/// BO (section IV-C): the fastest under `limit` of the selections for `selected_for`, over
/// combinations with weights in [-1, 1] from Bayesian optimisation, which starts with the four
/// scores: no score alone is faster. Where nothing is feasible, the result is infeasible too.
LoadedSelection search_weights(Evaluator& evaluator, const SwapCandidates& candidates, Bytes limit,
                               Bytes selected_for, const WeightSearchOptions& options = {});

/// The least load under which a selection stalls for at most `tolerance` of the compute time, by
/// the four scores and BO, made for that load or any tighter one.
struct LeastLoad {
  Bytes bytes = 0;  ///< the peak without swapping when nothing less is found
  LoadedSelection selection;
};
LeastLoad least_load(Evaluator& evaluator, const SwapCandidates& candidates,
                     double tolerance = kNoOverhead, const WeightSearchOptions& options = {});

}  // namespace tidepool
