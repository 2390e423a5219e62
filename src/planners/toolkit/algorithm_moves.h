// Trials for searches that choose algorithms: an op's or a group's algorithm together with the gaps
// over it that make room for its workspace, or that use the room which it leaves.
//
// Note [Compound moves]. At a tight budget a faster algorithm needs more room than one tensor
// leaves: single changes lead through states that stall. So what an op's new workspace exceeds the
// limit by leaves with it, and where a workspace shrinks gaps that then fit come back: Note [Room]
// in room_moves.h. The other way round, a gap that leaves gives its room to the ops that it spans,
// and one that comes back takes it.
#pragma once

#include <vector>

#include "planners/toolkit/algorithm_space.h"
#include "planners/toolkit/room_moves.h"

namespace tidepool {

class AlgorithmMoves {
 public:
  using State = RoomMoves::State;
  /// All must outlive the moves, which `room` makes.
  AlgorithmMoves(const Lowering& lowering, const AlgorithmSpace& space, RoomMoves& room);

  /// Of an op, or of its whole group.
  void change_algorithms(const State& state, Random& random);
  /// A given gap leaves or comes back.
  void change_gap(const State& state, GapId gap, char away);

 private:
  const AlgorithmSpace& space_;
  RoomMoves& room_;
  std::vector<std::int32_t> choice_of_;  ///< per op; kNone
};

}  // namespace tidepool
