// AreaCurve: the integral of the memory load over time, with the load lowered over ranges of ops.
#pragma once

#include <span>
#include <vector>

#include "base/time.h"
#include "ir/program.h"

namespace tidepool {

/// In byte seconds, up to rounding. A change takes time in proportion to the blocks of ops behind
/// it, an area takes constant time.
class AreaCurve {
 public:
  AreaCurve() = default;
  /// `load` per op; `start` per op and one past. Both are copied.
  AreaCurve(std::span<const Bytes> load, std::span<const Nanos> start);

  /// Over [begin, end).
  void lower(OpId begin, OpId end, Bytes bytes);
  /// From the start of the iteration to the start of `op`, or to the end of the one before.
  [[nodiscard]] double until(OpId op) const;
  [[nodiscard]] double whole() const { return until(static_cast<OpId>(until_.size()) - 1); }

 private:
  static constexpr std::size_t kBlock = 64;

  struct Block {
    double lowered = 0;  ///< by how much all of it is lower
    double slope = 0;    ///< bytes that it is lower by for each second since its first op
  };

  std::vector<double> seconds_;  ///< when each op starts
  std::vector<double> until_;    ///< without what its block is lower by
  std::vector<Block> blocks_;
};

}  // namespace tidepool
