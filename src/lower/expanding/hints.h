// The hints of a strategy: what it fixes of single copies (CopyHint), made ready for expand.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lower/expansion.h"
#include "schedule/strategy.h"

namespace tidepool {

/// Reused between strategies of one program.
class Hints {
 public:
  /// Both must outlive this.
  Hints(const Program& program, const AccessIndex& index) : program_(program), index_(index) {}

  /// Empty when the hints of `strategy`, which must stay, make sense; otherwise what does not.
  std::string read(const Strategy& strategy);
  /// As after `read` of a strategy without any.
  void forget() {
    hint_of_gap_.clear();
    due_.clear();
    next_due_ = 0;
  }
  /// Null where the gap has none, and for kNone.
  [[nodiscard]] const CopyHint* of(GapId gap) const;

  /// A copy that a hint wants right before an op.
  struct Due {
    OpId before = kNone;
    GapId gap = kNone;
    bool in = false;  ///< copy in (barrier), otherwise copy out (trigger)
  };
  /// The next one before this op, if any; asked in the order of ops until there is none.
  const Due* next_due(OpId before) {
    const bool any = next_due_ < due_.size() && due_[next_due_].before == before;
    return any ? &due_[next_due_++] : nullptr;
  }

  /// Ops become calls, now that all calls are known. `op_call`: per op.
  void resolve(std::vector<Move>& moves, std::span<const CallId> op_call) const;

 private:
  [[nodiscard]] std::string wrong_with(const CopyHint& hint) const;

  const Program& program_;
  const AccessIndex& index_;
  const Strategy* strategy_ = nullptr;
  std::vector<std::int32_t> hint_of_gap_;  ///< empty without hints
  std::vector<Due> due_;                   ///< in the order of ops
  std::size_t next_due_ = 0;
};

}  // namespace tidepool
