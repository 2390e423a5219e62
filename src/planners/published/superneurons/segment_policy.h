// SegmentPolicy: which outputs of which layers leave, and which are computed again, as all modes of
// SuperNeurons have it. See Note [SuperNeurons] in superneurons.h.
#pragma once

#include <string>
#include <vector>

#include "planners/planner.h"
#include "planners/toolkit/feature_maps.h"
#include "planners/toolkit/strategy_builder.h"

namespace tidepool {

/// The policy for one program.
class SegmentPolicy {
 public:
  /// `lowering` must outlive this. `may`: without swaps nothing of checkpoints leaves, without
  /// recomputations nothing of cheap layers does. One algorithm per op.
  SegmentPolicy(const Lowering& lowering, const MayDecide& may,
                std::vector<std::int32_t> algorithms);

  Strategy decide();
  /// Without times of copies: which gaps are away.
  void decide_gaps(StrategyBuilder& builder) const;
  [[nodiscard]] StrategyBuilder builder() const { return {program_, index_, algorithms_}; }
  [[nodiscard]] const std::vector<std::int32_t>& algorithms() const { return algorithms_; }

  /// Of the last decision, for people.
  [[nodiscard]] std::string note() const;

 private:
  void begin_segments(StrategyBuilder& builder) const;
  [[nodiscard]] std::vector<OpId> backward_checkpoints() const;
  void prefetch(StrategyBuilder& builder) const;
  [[nodiscard]] std::size_t segments_over_peak() const;
  [[nodiscard]] Bytes working_set_of(const LayerPass& pass) const;

  const Program& program_;
  const AccessIndex& index_;
  MayDecide may_;
  Bytes alignment_;
  LayerPasses passes_;
  std::vector<FeatureMap> maps_;
  std::vector<std::int32_t> algorithms_;
  int swapped_ = 0;
  int recomputed_ = 0;
};

/// Dynamic workspaces: every op runs the fastest algorithm for which there is room, in all its
/// runs. The strategy has the least workspaces.
void choose_workspaces(Lowering& lowering, Bytes budget, Strategy& strategy);

/// The policy's strategy with addresses, with dynamic workspaces where the planner may choose
/// algorithms; else what is left to a published system that cannot train.
Result<PlannerOutput> segment_output(PlannerContext& context, const MayDecide& may);

}  // namespace tidepool
