// Plain lifetimes: what is known of them without a conflict graph.
#pragma once

#include "pack/pack.h"

namespace tidepool {

/// A problem of plain lifetimes. Buffers begin in the order of their lower ends.
PackProblem lifetime_problem(std::vector<Bytes> sizes, std::vector<Lifetime> lifetimes);

/// Lifetimes in a cycle that repeats, as a conflict graph: an upper end beyond the cycle is in the
/// next one, and a buffer as long as the cycle is always there. Lower ends are in [0, cycle), no
/// buffer is longer than the cycle. Quadratic memory.
PackProblem cyclic_problem(std::vector<Bytes> sizes, std::span<const Lifetime> lifetimes,
                           std::int64_t cycle);

/// The most bytes alive at any time: no packing is smaller. Only with lifetimes.
Bytes peak_load(const PackProblem& problem);

/// The same problem as a conflict graph: quadratic memory, meant for small problems.
PackProblem with_conflict_graph(const PackProblem& problem);

/// Lifetimes on a short axis: positions 0, 1, .. of the distinct lower ends. A buffer begins at the
/// position of its lower end and ends before the first position at or above its upper end. The
/// intersections are the same, and at every position something begins.
class TimeAxis {
 public:
  explicit TimeAxis(const PackProblem& problem);

  [[nodiscard]] std::int32_t length() const { return length_; }
  [[nodiscard]] std::int32_t begin(std::size_t buffer) const { return begin_[buffer]; }
  [[nodiscard]] std::int32_t end(std::size_t buffer) const { return end_[buffer]; }
  /// Bytes alive at each position.
  [[nodiscard]] std::vector<Bytes> load(const PackProblem& problem) const;

 private:
  std::int32_t length_ = 0;
  std::vector<std::int32_t> begin_;
  std::vector<std::int32_t> end_;
};

}  // namespace tidepool
