// PeakCurve: the memory load per op, lowered over ranges, and where it is highest.
#pragma once

#include <span>
#include <vector>

#include "ir/program.h"

namespace tidepool {

/// A tree over the ops: a change and the peak take time log n.
class PeakCurve {
 public:
  explicit PeakCurve(std::span<const Bytes> load);

  /// Over [begin, end).
  void lower(OpId begin, OpId end, Bytes bytes);
  [[nodiscard]] Bytes peak() const { return highest_[1]; }
  /// The first op at the peak.
  [[nodiscard]] OpId peak_op() const;
  [[nodiscard]] std::vector<Bytes> load() const;

 private:
  // Node k is above nodes 2 k and 2 k + 1; the leaves are ops, the last ones of none.
  std::size_t ops_;
  std::size_t leaves_ = 1;
  std::vector<Bytes> highest_;  ///< per node: below it, without what is lowered above it
  std::vector<Bytes> lowered_;  ///< per node: by how much all below it is lower
};

}  // namespace tidepool
