// Trials for searches that choose algorithms: an op's or a group's algorithm together with the gaps
// over it that make room for its workspace, or that use the room which it leaves.
//
// Note [Compound moves]. At a tight budget a faster algorithm needs more room than one tensor
// leaves: single changes lead through states that stall. So what an op's new workspace exceeds the
// limit by leaves with it, the cheapest gaps over the op first, and where a workspace shrinks, gaps
// that then fit at every op they span come back. The other way round, a gap that leaves gives its
// room to the ops that it spans, and one that comes back takes it. What is cheap is a guess that
// chance varies: the time of a gap's copies by its bytes, less where there is long to make them.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "base/random.h"
#include "lower/lower.h"
#include "planners/toolkit/algorithm_space.h"
#include "planners/toolkit/remakable_gaps.h"
#include "planners/toolkit/timeline_search.h"

namespace tidepool {

class AlgorithmMoves {
 public:
  /// All must outlive the moves. `movable`: gaps that may be copied.
  AlgorithmMoves(const Lowering& lowering, const AlgorithmSpace& space,
                 std::span<const GapId> movable, std::span<const RemakableGap> remakable);

  /// A state under a limit.
  struct State {
    const AwayGaps& away;
    const std::vector<std::int32_t>& algorithms;
    std::span<const Bytes> load;  ///< per op, without its workspace
    Bytes limit = 0;
  };
  /// What becomes of some ops and some gaps.
  struct Move {
    std::vector<std::pair<OpId, std::int32_t>> algorithms;
    std::vector<std::pair<GapId, char>> gaps;
  };
  /// The last one of `change_algorithms` or `change_gap`.
  [[nodiscard]] const Move& move() const { return move_; }

  /// Of an op, or of its whole group.
  void change_algorithms(const State& state, Random& random);
  /// A given gap leaves or comes back.
  void change_gap(const State& state, GapId gap, char away);

 private:
  struct Over {
    GapId gap = kNone;
    char away = kCopied;
    Bytes bytes = 0;   ///< aligned
    double price = 0;  ///< nanoseconds a byte
  };
  void make_room(const State& state, OpId op, Bytes workspace, Random& random);
  void use_room(const State& state, OpId op, Random& random);
  std::span<const Over> over(OpId op);
  [[nodiscard]] bool spans(const Gap& gap, OpId op) const;
  template <class See>
  void each_op_in(const Gap& gap, See&& see) const;
  [[nodiscard]] bool moves(GapId gap) const;
  void leave(const Over& gap, Bytes sign);
  [[nodiscard]] Bytes workspace(const State& state, OpId op) const;

  const Lowering& lowering_;
  const AlgorithmSpace& space_;
  std::vector<Over> gaps_;
  std::vector<std::vector<Over>> over_;  ///< per op, when asked for
  std::vector<bool> known_;
  std::vector<std::int32_t> choice_of_;  ///< per op; kNone
  std::vector<Bytes> load_;              ///< as the move has it so far
  Move move_;
};

}  // namespace tidepool
