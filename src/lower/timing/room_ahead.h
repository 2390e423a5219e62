// RoomAhead: whether a copy-in that is issued early will find room from then on until the call that
// it is for. By the load that a pass expects before it is made (predict_occupied), and by what it
// has issued early so far.
//
// Invariant: within a pass room only gets less. So a place that had no room once has none later,
// and what had room beside others has it until something is added.
#pragma once

#include <span>
#include <vector>

#include "base/at.h"
#include "lower/timing/prediction.h"
#include "lower/timing_problem.h"

namespace tidepool {

/// Reused between problems. Not thread-safe.
class RoomAhead {
 public:
  void begin(const TimingProblem& problem, Bytes load_limit);
  /// `before`: the iteration before.
  void begin_pass(const IterationTimes& before);

  /// From call `from` until the call that the copy-in is for, beside those `passed_by`, until
  /// theirs; these are for earlier calls, in their order.
  [[nodiscard]] bool has_room(std::int32_t in, CallId from,
                              std::span<const std::int32_t> passed_by);
  /// Where there was no room: before this call there will be none for the copy-in.
  [[nodiscard]] CallId no_room_at(std::int32_t in) const { return no_room_[at(in)]; }
  /// It is issued before call `from`.
  void take(const TimedIn& in, CallId from) {
    occupied_.add(at(from), at(in.call) + 1, in.bytes);
    ++additions_;
  }

 private:
  /// What room a copy-in had beside others when that was looked at last.
  struct Room {
    std::int32_t additions = kNone;  ///< additions_ then
    Bytes beside = 0;
  };

  const TimingProblem* p_ = nullptr;
  Bytes load_limit_ = 0;
  LoadCurve occupied_;  ///< load, and predicted bytes still being copied out
  std::vector<Bytes> in_flight_;
  std::vector<CallId> no_room_;  ///< per copy-in
  std::vector<Room> room_;       ///< per copy-in
  std::int32_t additions_ = 0;   ///< to occupied_ in this pass
};

}  // namespace tidepool
