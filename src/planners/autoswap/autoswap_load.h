// AutoSwap under a limit on the memory load alone, as the paper evaluates it (section VI-B): no
// addresses. The planners `autoswap` and `autoswap-published` add those.
//
// Note [Two AutoSwaps]. A selection is plain when it is made for the limit itself. The paper's
// (`autoswap-published`) are plain, every variable that is picked is copied out, and copies in are
// timed backwards from the accesses. Copies take time to leave, so a plain selection can stall
// where one for a tighter limit does not; what the host has already need not be copied to it; and a
// copy in that starts as early as memory allows is late less often. `autoswap` has all three.
#pragma once

#include <cstdint>

#include "base/stop.h"
#include "lower/evaluate.h"
#include "planners/toolkit/swap_candidates.h"

namespace tidepool {

/// What counts as no overhead: a thousandth of the iteration.
inline constexpr double kNoOverhead = 1e-3;

enum class CopyRule : std::uint8_t {
  early,      ///< in as soon as memory allows; out only where the host lacks the value
  published,  ///< in backwards, see backward_copies.h; out of every pick
};

/// A selection and what it costs.
struct LoadedSelection {
  SwapWeights weights{};
  Bytes selected_for = 0;  ///< the limit up to which gaps were picked
  SwapSelection selection;
  Evaluation evaluation;  ///< under the load limit
};

/// The plain selection by one combination.
LoadedSelection select_under_load(Evaluator& evaluator, const SwapCandidates& candidates,
                                  const SwapWeights& weights, Bytes limit,
                                  CopyRule copies = CopyRule::early);

/// The feasible selections by every score for the limit and for tighter ones, timed under the
/// limit. What several scores select appears once.
std::vector<LoadedSelection> select_for_tighter(Evaluator& evaluator,
                                                const SwapCandidates& candidates, Bytes limit,
                                                const Stop& stop);

struct WeightSearchOptions {
  int evaluations = 32;  ///< after those of the four scores
  std::uint64_t seed = 1;
  Stop stop;
  CopyRule copies = CopyRule::early;
  bool to_the_end = false;  ///< all evaluations, also where nothing stalls any more
};
/// Those of the published method.
WeightSearchOptions published_search(std::uint64_t seed, Stop stop);

/// BO (section IV-C): the fastest under `limit` of the selections for `selected_for`, over
/// combinations with weights in [-1, 1] from Bayesian optimisation, which starts with the four
/// scores: no score alone is faster. Where nothing is feasible, the result is infeasible too.
LoadedSelection search_weights(Evaluator& evaluator, const SwapCandidates& candidates, Bytes limit,
                               Bytes selected_for, const WeightSearchOptions& options = {});

/// What `autoswap` finds without addresses: the fastest of `select_for_tighter`, and of BO where
/// that has overhead. Infeasible where nothing is feasible.
LoadedSelection fastest_under_load(Evaluator& evaluator, const SwapCandidates& candidates,
                                   Bytes limit, const WeightSearchOptions& options = {});

/// The least load under which a selection stalls for at most `tolerance` of the compute time, by
/// the four scores and BO, made for that load or any tighter one.
struct LeastLoad {
  Bytes bytes = 0;  ///< the peak without swapping when nothing less is found
  LoadedSelection selection;
};
LeastLoad least_load(Evaluator& evaluator, const SwapCandidates& candidates,
                     double tolerance = kNoOverhead, const WeightSearchOptions& options = {});

/// The same of plain selections by BO: the least of the limits from load_min up, a two-hundredth of
/// the peak apart, which is where the paper looks. Overhead is not monotonic in the limit, so some
/// limits above it may have overhead.
LeastLoad least_plain_load(Evaluator& evaluator, const SwapCandidates& candidates, double tolerance,
                           const WeightSearchOptions& options);

}  // namespace tidepool
