// Feature maps: the dimensions of HOME's search. Each has one action: keep, swap, recompute.
//
// Note [Feature maps]. The paper has one feature map a layer, which waits from the layer's forward
// pass for its backward pass. Here it is a gap of an activation or input that begins at a forward
// op and ends at a backward op (LayerPasses says which those are). Skip connections follow: all
// forward readers of a tensor lie before its gap, and where backward passes read it several times
// it is back from the first of them on. A tensor that turns from forward to backward several times
// (recordings) has a dimension for each turn, and in-place layers have those of the versions that
// backward reads. Gaps within forward or within backward, weights and tensors too small to be worth
// a copy stay: the paper has no actions for them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "planners/planner_context.h"
#include "planners/published/home/value_graph.h"

namespace tidepool {

/// In the paper's numbers (section 3.1).
enum class Action : std::uint8_t { keep = 0, swap = 1, recompute = 2 };

/// A feature map, and what may become of it.
struct MapChoice {
  GapId gap = kNone;
  ValueId value = kNone;
  OpId from = kNone;      ///< its last forward reader (or its maker)
  OpId to = kNone;        ///< its first backward reader
  OpId fetch_at = kNone;  ///< a copy in may start here: the previous backward pass begins
  bool may_swap = false;
  bool may_recompute = false;
};

class FeatureMaps {
 public:
  /// One algorithm per op. `program` and `index` must outlive this.
  FeatureMaps(const Program& program, const AccessIndex& index, const Machine& machine,
              std::span<const std::int32_t> algorithms, const MayDecide& may);

  /// In the order in which forward leaves them. All have an action beside keep.
  [[nodiscard]] const std::vector<MapChoice>& maps() const { return maps_; }
  [[nodiscard]] const ValueGraph& values() const { return values_; }
  /// The actions possible for each, ascending, as numbers.
  [[nodiscard]] std::vector<std::vector<std::uint8_t>> choices() const;

 private:
  ValueGraph values_;
  std::vector<MapChoice> maps_;
};

}  // namespace tidepool
