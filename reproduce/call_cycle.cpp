#include "call_cycle.h"

#include <numeric>

#include "base/at.h"

namespace tidepool::reproduce {

Bytes CallCycle::all_bytes() const { return std::accumulate(bytes.begin(), bytes.end(), Bytes{0}); }

CallCycle call_cycle(const Recording& recording, const Iteration& iteration) {
  const BlockLives lives = find_block_lives(recording, iteration);
  CallCycle cycle;
  for (std::size_t i = 0; i < lives.all.size(); ++i) {
    const BlockLife& life = lives.all[i];
    cycle.bytes.push_back(recording.blocks[at(life.block)].bytes);
    if (life.malloc_at == kNone) cycle.before.push_back(i);
    if (life.rest != kNone) cycle.becomes.emplace_back(i, at(life.rest));
  }
  for (std::size_t i = 0; i < lives.of_event.size(); ++i) {
    const TraceEvent& event = recording.events[static_cast<std::size_t>(iteration.start) + i];
    CallCycle::Step step{event.kind, at(lives.of_event[i]), {}};
    if (event.kind == EventKind::malloc) ++cycle.mallocs;
    if (event.kind != EventKind::malloc && event.kind != EventKind::free) {
      step.op = event.op == kNone ? std::string(kEventKinds[static_cast<std::size_t>(event.kind)])
                                  : recording.ops[at(event.op)];
    }
    cycle.steps.push_back(std::move(step));
  }
  return cycle;
}

}  // namespace tidepool::reproduce
