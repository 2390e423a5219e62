// Which algorithms the ops of a program may run, for searches that choose them.
#pragma once

#include <span>
#include <vector>

#include "base/at.h"
#include "base/random.h"
#include "ir/program.h"

namespace tidepool {

// Note [Algorithm choice]. Candidates are deterministic, fit the limit beside what their op cannot
// do without, and have no other candidate that is as fast and needs no more; an algorithm nobody
// has measured (it takes no time, others of its op do) is none. Ops with equal operands and
// equal candidates (the same layer in other rounds, equal layers) are a group: searches mostly
// change groups, whose one choice is worth more than many single ones.

/// Empty: nobody has a choice.
class AlgorithmSpace {
 public:
  AlgorithmSpace() = default;
  /// Of device ops, within `limit` bytes. `otherwise`: one per op, what ops without a choice run.
  AlgorithmSpace(const Program& program, Bytes alignment, Bytes limit,
                 std::vector<std::int32_t> otherwise);

  struct Candidate {
    std::int32_t algorithm = 0;
    Nanos time{};
    Bytes workspace = 0;  ///< aligned
  };
  /// An op with at least two candidates.
  struct Choice {
    OpId op = kNone;
    std::vector<Candidate> candidates;  ///< each needs more than the one before, and is faster
    [[nodiscard]] Nanos saving() const { return candidates.front().time - candidates.back().time; }
    /// Per algorithm of the op: where it is among the candidates; of one that is none, the last
    /// that needs no more, or the first.
    std::vector<std::size_t> positions;
    [[nodiscard]] std::size_t position(const std::vector<std::int32_t>& algorithms) const {
      return positions[at(algorithms[at(op)])];
    }
  };

  [[nodiscard]] bool empty() const { return choices_.empty(); }
  [[nodiscard]] std::span<const Choice> choices() const { return choices_; }
  /// Positions in `choices`, by what the group could save: the most first.
  [[nodiscard]] std::span<const std::vector<std::size_t>> groups() const { return groups_; }
  /// Of a choice.
  [[nodiscard]] std::span<const std::size_t> group_of(std::size_t choice) const {
    return groups_[group_of_[choice]];
  }
  /// Of any group alike, or, half of the time, of one by what the groups could save.
  [[nodiscard]] std::size_t random_choice(Random& random) const;

  /// Of each op the fastest candidate: no iteration takes less.
  [[nodiscard]] const std::vector<std::int32_t>& fastest() const { return fastest_; }
  /// Of each op the candidate whose time, with a price in nanoseconds for each byte by which the
  /// load exceeds the limit at the op, is least. `load`: per op, without workspaces.
  [[nodiscard]] std::vector<std::int32_t> by_value(std::span<const Bytes> load, Bytes limit,
                                                   double price) const;
  /// The fastest of those that stay within the limit, or the least workspace.
  [[nodiscard]] std::vector<std::int32_t> fitting(std::span<const Bytes> load, Bytes limit) const;

 private:
  void find_groups(const Program& program);

  std::vector<std::int32_t> otherwise_;
  std::vector<Choice> choices_;
  std::vector<std::vector<std::size_t>> groups_;
  std::vector<std::size_t> group_of_;
  std::vector<double> savings_;  ///< of the groups up to each
  std::vector<std::int32_t> fastest_;
};

}  // namespace tidepool
