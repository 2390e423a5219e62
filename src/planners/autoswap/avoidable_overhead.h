// Optimality analysis of AutoSwap (section VI-B3): how much of a swap schedule's overhead comes
// from what was not selected.
//
// Note [Avoidable overhead]. Overhead mostly arises in the forward pass, where the load rises and
// ops wait for copies out. While the copy-out stream is idle there, a tensor that stays on the
// device could have gone out, and the op that waits later would have waited less. A stall before an
// op is avoidable as far as the copy-out stream was idle before it while the gap of a tensor that
// is kept, and whose gap lasts beyond that op, had begun. Idle time counts once, and so does the
// time it takes to copy a tensor. Tensors are divisible here and come back for nothing, so this
// is what could have been avoided at most. The forward pass ends at the peak of the load.
#pragma once

#include "lower/evaluate.h"
#include "planners/toolkit/swap_candidates.h"

namespace tidepool {

struct AvoidableOverhead {
  Nanos overhead{};          ///< stalls of the whole iteration
  Nanos forward_overhead{};  ///< those up to the op with the peak
  Nanos copies_out{};        ///< time of all copies out of an iteration
  Nanos idle_out{};          ///< forward pass: time without a copy out
  Nanos avoidable{};         ///< of forward_overhead
  /// The part of the copies that could be hidden and is (the paper's "94 %").
  [[nodiscard]] double hidden() const;
};

/// Of the evaluator's last evaluation, which must have been feasible and of this strategy. Tensors
/// smaller than the candidates' threshold do not count.
AvoidableOverhead avoidable_overhead(Evaluator& evaluator, const SwapCandidates& candidates,
                                     const Strategy& strategy);

}  // namespace tidepool
