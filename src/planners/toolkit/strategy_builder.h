// StrategyBuilder: what a planner decides becomes a Strategy.
#pragma once

#include <string>
#include <vector>

#include "schedule/strategy.h"

namespace tidepool {

/// Begins with everything kept. Which of the gaps that are away are swapped and which dropped it
/// finds out itself.
class StrategyBuilder {
 public:
  /// Both must outlive the builder. One algorithm per op.
  StrategyBuilder(const Program& program, const AccessIndex& index,
                  std::vector<std::int32_t> algorithms);

  void keep(GapId gap) { decide(gap, Decision::keep); }
  void away(GapId gap) { decide(gap, Decision::swap); }
  void recompute(GapId gap) { decide(gap, Decision::recompute); }
  /// For a gap that is away; one hint a gap. What it says of a copy out is left out where there is
  /// none, because the gap became a drop.
  void hint(const CopyHint& hint) { hints_.push_back(hint); }
  void run(OpId op, std::int32_t algorithm);

  /// The decision as it stands.
  [[nodiscard]] Decision decision(GapId gap) const;
  /// The strategy as it stands, for trials. Not refused, whatever it says: evaluator and `lower`
  /// do that.
  [[nodiscard]] const Strategy& strategy();

  /// Fails with `bad_input`, naming op and tensor, where the program does not allow what was
  /// decided: a gap or an algorithm that there is not, a gap in which nothing is decided (one that
  /// begins or ends at a host op), a recomputation of an op that must not run again, a hint
  /// outside of its gap.
  Result<Strategy> build();

 private:
  void decide(GapId gap, Decision decision);

  const Program& program_;
  const AccessIndex& index_;
  Strategy strategy_;
  std::vector<CopyHint> hints_;
  std::string refused_;  ///< the first reason
};

}  // namespace tidepool
