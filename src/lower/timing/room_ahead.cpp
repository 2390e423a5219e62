#include "lower/timing/room_ahead.h"

#include <algorithm>

namespace tidepool {

void RoomAhead::begin(const TimingProblem& problem, Bytes load_limit) {
  p_ = &problem;
  load_limit_ = load_limit;
  no_room_.resize(problem.ins.size());
  room_.resize(problem.ins.size());
}

void RoomAhead::begin_pass(const IterationTimes& before) {
  predict_occupied(*p_, before, in_flight_, occupied_);
  std::fill(no_room_.begin(), no_room_.end(), kNone);
  std::fill(room_.begin(), room_.end(), Room{});
  additions_ = 0;
}

bool RoomAhead::has_room(std::int32_t i, CallId from, std::span<const std::int32_t> passed_by) {
  const TimedIn& in = p_->ins[at(i)];
  const Bytes limit = load_limit_ - in.bytes;
  CallId& failed = no_room_[at(i)];
  if (failed >= from && occupied_.at(at(failed)) > limit) return false;
  Bytes beside = 0;
  for (const std::int32_t other : passed_by) beside += p_->ins[at(other)].bytes;
  Room& known = room_[at(i)];
  if (known.additions == additions_ && beside <= known.beside) return true;
  const Bytes beside_at_first = beside;
  std::size_t position = at(from);
  const auto free_until = [&](std::size_t end) {
    const std::size_t found = occupied_.first_above(position, end, limit - beside);
    if (found < end) failed = static_cast<CallId>(found);
    return found >= end;
  };
  for (const std::int32_t other : passed_by) {
    const TimedIn& passed = p_->ins[at(other)];
    const std::size_t end = std::min(at(passed.call) + 1, at(in.call));
    if (position < end) {
      if (!free_until(end)) return false;
      position = end;
    }
    beside -= passed.bytes;
  }
  if (position < at(in.call) && !free_until(at(in.call))) return false;
  known = {additions_, beside_at_first};
  return true;
}

}  // namespace tidepool
