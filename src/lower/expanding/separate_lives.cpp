#include "lower/expanding/separate_lives.h"

#include "base/at.h"

namespace tidepool {
namespace {

/// `next`: the second one is of the next iteration.
void separate(const Life& before, const Life& after, bool next, Expansion& x) {
  if (after.begin_move != kNone && before.last_call != kNone) {
    Move& in = x.moves[at(after.begin_move)];
    const auto calls = static_cast<CallId>(x.calls.size());
    const auto position = [&](CallId call, bool previous) {
      return previous ? CallId{call - calls} : call;
    };
    if (in.after == kNone ||
        position(before.last_call, next) > position(in.after, in.after_previous)) {
      in.after = before.last_call;
      in.after_previous = next;
    }
  }
  if (after.begin_call != kNone && before.end_move != kNone) {
    Move& out = x.moves[at(before.end_move)];
    out.barrier = after.begin_call;
    out.barrier_next = next;
  }
}

}  // namespace

void separate_lives(std::size_t tensors, Expansion& x) {
  std::vector<std::vector<const Life*>> lives(tensors);
  for (const Life& life : x.lives) {
    if (life.space == 0 && !life.always) lives[at(life.tensor)].push_back(&life);
  }
  for (std::vector<const Life*>& list : lives) {
    if (list.empty()) continue;
    // One that crosses is the first of the iteration, and the last again.
    const bool comes_round = list.front()->crosses;
    if (comes_round) list.push_back(list.front());
    for (std::size_t i = 1; i < list.size(); ++i) separate(*list[i - 1], *list[i], false, x);
    if (!comes_round) separate(*list.back(), *list.front(), true, x);
  }
}

}  // namespace tidepool
