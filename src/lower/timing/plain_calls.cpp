#include "lower/timing/plain_calls.h"

#include <algorithm>

namespace tidepool {

void PlainCalls::find(const TimingProblem& problem, std::span<const Nanos> ends) {
  const CallId calls = problem.call_count();
  unstalled_.resize(at(calls) + 1);
  unstalled_[0] = Nanos{0};
  std::copy(ends.begin(), ends.end(), unstalled_.begin() + 1);
  is_other_.assign(at(calls) + 2, 0);
  for (const TimedOut& out : problem.outs) is_other_[at(out.call)] = 1;
  for (const TimedIn& in : problem.ins) is_other_[at(in.call)] = is_other_[at(in.call) + 1] = 1;
  others_.clear();
  for (CallId c = 0; c < calls; ++c) {
    const TimedCall& call = problem.calls[at(c)];
    if (is_other_[at(c)] != 0 || !call.on_device || call.needs_out != kNone) others_.push_back(c);
  }
  others_.push_back(calls);
}

}  // namespace tidepool
