// A virtual clock of a device that takes a while to begin an instruction.
#pragma once

#include <algorithm>
#include <vector>

#include "base/at.h"
#include "runtime/observe.h"
#include "schedule/lateness.h"
#include "sim/simulate.h"

namespace tidepool::testing {

struct LateRun {
  TimedBlock timings;
  std::vector<Nanos> ends;  ///< of each iteration's compute
};

/// A stream that was idle for another's instruction begins `woken` late, one that was not `next`.
inline LateRun run_late(const Program& program, const Plan& plan, const Machine& machine,
                        const std::vector<Lateness>& late, int iterations) {
  const auto& list = plan.steady.instructions;
  LateRun run;
  std::vector<Nanos> free_at(plan.streams.size(), Nanos{1});
  for (int k = 0; k < iterations; ++k) {
    std::vector<OpTiming> now(list.size());
    Nanos end{0};
    for (std::size_t i = 0; i < list.size(); ++i) {
      const auto stream = at(list[i].stream);
      const Lateness lateness = stream < late.size() ? late[stream] : Lateness{};
      Nanos others{0};
      for (const Wait& wait : list[i].waits) {
        if (wait.iteration != 0 && k == 0) continue;
        const auto& of = wait.iteration == 0 ? now : run.timings.back();
        others = std::max(others, of[at(wait.index)].end);
      }
      const bool waits = others > free_at[stream];
      now[i].start = waits ? others + lateness.woken : free_at[stream] + lateness.next;
      now[i].end = now[i].start + duration_of(list[i], plan, program, machine);
      free_at[stream] = now[i].end;
      if (plan.streams[stream].kind == StreamKind::compute) end = std::max(end, now[i].end);
    }
    run.timings.push_back(std::move(now));
    run.ends.push_back(end);
  }
  return run;
}

}  // namespace tidepool::testing
