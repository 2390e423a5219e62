// When single copies are issued, as a part of a search's state: moves that bring a copy forward,
// put it off, or leave it to `lower` again.
//
// Note [Triggers]. `lower` issues copies out as their gaps begin and copies in by their deadlines.
// Where few large tensors share the memory, another order can be faster: a copy out that lets
// another one go first, a copy in that waits until the link has done what is more urgent. A trigger
// (CopyHint) says before which op a copy is issued; it is moved over few ops more often than over
// many. A quarter of the moves of one in makes it an early one, or no longer: it then only says
// whose memory and link come first, as it costs time to wait for an op where memory is free before.
// It is kept while the gap is not away, without effect: a gap that leaves again has it again.
#pragma once

#include <span>
#include <vector>

#include "base/random.h"
#include "schedule/strategy.h"

namespace tidepool {

/// Hints with triggers alone, at most one a gap, by gap.
using Triggers = std::vector<CopyHint>;

/// The triggers of a strategy; what else its hints fix is left out.
Triggers triggers_of(const Strategy& strategy);

/// Those of them that a strategy with these decisions may have as hints.
Triggers in_effect(const Triggers& triggers, std::span<const Decision> decisions);

class TriggerMoves {
 public:
  /// Both must outlive this.
  TriggerMoves(const Program& program, const AccessIndex& index)
      : program_(program), index_(index) {}

  [[nodiscard]] const Triggers& triggers() const { return triggers_; }
  void assign(const Triggers& triggers) { triggers_ = triggers; }

  /// Sets, moves or takes away a trigger of a gap that is swapped or dropped.
  void change(GapId gap, Decision decision, Random& random);
  /// Of a gap that has one.
  void take_away(GapId gap);
  /// The last change.
  void undo() { triggers_.swap(before_); }

 private:
  [[nodiscard]] Triggers::iterator find(GapId gap);
  [[nodiscard]] std::int32_t position(const Gap& gap, OpId op) const;
  [[nodiscard]] std::int32_t end(const Gap& gap) const;
  /// The first device op from there on, which is in the gap.
  [[nodiscard]] OpId device_op_from(std::int32_t position) const;
  [[nodiscard]] std::int32_t moved(std::int32_t position, Random& random) const;

  const Program& program_;
  const AccessIndex& index_;
  Triggers triggers_;
  Triggers before_;  ///< the last change
};

}  // namespace tidepool
