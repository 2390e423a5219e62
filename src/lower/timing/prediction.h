// What a time pass expects before it is made: of the iteration before it, and of the load.
#pragma once

#include <vector>

#include "lower/timing/load_curve.h"
#include "lower/timing_problem.h"

namespace tidepool {

/// One iteration's times. Time 0 is when the compute stream has done the iteration before.
struct IterationTimes {
  std::vector<Nanos> call_start;
  std::vector<Nanos> call_end;
  std::vector<Nanos> host_end;  ///< of host calls; of device calls as call_end
  std::vector<Nanos> out_end;
  std::vector<Nanos> in_end;

  void resize(const TimingProblem& problem);
};

/// The iteration as if nothing ever stalled; returns how long it takes. `times` has its size.
Nanos predict_unstalled(const TimingProblem& problem, IterationTimes& times);

/// The load without early copies in, and bytes still on their way out when each call could start,
/// from the ends known so far: a call that waited for memory in the pass before should not wait
/// again because a copy-in took what the wait had freed. `in_flight` is room to work in.
void predict_occupied(const TimingProblem& problem, const IterationTimes& times,
                      std::vector<Bytes>& in_flight, LoadCurve& occupied);

/// When each of free_ins would have to start for no op to wait, at the ops' times of the pass
/// before.
void predict_latest_starts(const TimingProblem& problem, const IterationTimes& times,
                           std::vector<Nanos>& latest);

}  // namespace tidepool
