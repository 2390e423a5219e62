// Trials that exchange tensors under the limit: one comes back and others leave for it, or one
// leaves and others use its room.
//
// Note [Room]. Where tensors are few and large, or of very different sizes, a state has few
// neighbours that fit: a large tensor can only come back when several small ones leave with the
// same trial. So what the load exceeds the limit by at an op leaves from over it, the cheapest gaps
// first; and where there is room, gaps that fit at every op they span come back. What is cheap is a
// guess that chance varies: the time of a gap's copies by its bytes, less where there is long to
// make them; or of its remaking. The idea is that of ejection chains (Glover 1996).
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "base/random.h"
#include "lower/lower.h"
#include "planners/toolkit/remakable_gaps.h"
#include "planners/toolkit/timeline_search.h"

namespace tidepool {

class RoomMoves {
 public:
  /// All must outlive the moves. `movable`: gaps that may be copied. `fastest`: algorithms by which
  /// there is time for copies.
  RoomMoves(const Lowering& lowering, const std::vector<std::int32_t>& fastest,
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
  [[nodiscard]] const Move& move() const { return move_; }

  /// A gap that is away comes back, and others over it leave; or it leaves, copied or remade, and
  /// others over it come back where they fit.
  void exchange(const State& state, GapId gap, Random& random);

  // For trials that begin with something else.
  /// Forgets the move before.
  void begin(const State& state);
  void become(GapId gap, char away);
  void run_other(OpId op, std::int32_t algorithm) { move_.algorithms.emplace_back(op, algorithm); }
  /// Gaps over an op leave as long as the load there exceeds the limit.
  void make_room(const State& state, OpId op, Random& random);
  /// At the ops of a gap.
  void make_room_in(const State& state, GapId gap, Random& random);
  /// Gaps over an op come back that fit at every op they span.
  void use_room(const State& state, OpId op, Random& random);
  /// As the move has it so far, without a workspace.
  [[nodiscard]] Bytes load(OpId op) const { return load_[static_cast<std::size_t>(op)]; }
  /// In which the gap's tensor need not be there.
  template <class See>
  void each_op_in(GapId g, See&& see) const {
    const Gap& gap = lowering_.index().gaps()[static_cast<std::size_t>(g)];
    const auto ops = static_cast<OpId>(lowering_.program().ops.size());
    for (OpId op = gap.from + 1; op < (gap.wraps ? ops : gap.to); ++op) see(op);
    if (!gap.wraps) return;
    for (OpId op = 0; op < gap.to; ++op) see(op);
  }

 private:
  struct Over {
    GapId gap = kNone;
    char away = kCopied;
    Bytes bytes = 0;   ///< aligned
    double price = 0;  ///< nanoseconds a byte
  };
  /// Positions in `gaps_`; until the next call for another op.
  std::span<const std::int32_t> over(OpId op);
  [[nodiscard]] bool spans(const Gap& gap, OpId op) const;
  [[nodiscard]] bool moves(GapId gap) const;
  [[nodiscard]] Bytes aligned(GapId gap) const;
  [[nodiscard]] Bytes excess(const State& state, OpId op) const;

  const Lowering& lowering_;
  std::vector<Over> gaps_;
  std::vector<bool> remakable_;                  ///< per gap
  std::vector<std::vector<std::int32_t>> over_;  ///< per op, when asked for
  std::vector<bool> known_;
  std::size_t listed_ = 0;   ///< in `over_`
  std::vector<Bytes> load_;  ///< as the move has it so far
  Move move_;
};

}  // namespace tidepool
