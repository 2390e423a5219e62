// PlainCalls: stretches of calls that nothing can happen to by themselves. A plain call is a device
// call for which no copy is due, behind which none begins, and which waits for none by itself. Runs
// of them are issued at once.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "base/at.h"
#include "lower/timing_problem.h"

namespace tidepool {

/// Reused between problems. Not thread-safe.
class PlainCalls {
 public:
  /// `ends`: of the calls, where nothing waits.
  void find(const TimingProblem& problem, std::span<const Nanos> ends);
  void begin_pass() { next_other_ = 0; }

  /// The first call from `c` on that is not plain; the number of calls where there is none. In a
  /// pass, `c` never decreases.
  [[nodiscard]] CallId end_of_stretch(CallId c) {
    while (others_[next_other_] < c) ++next_other_;
    return others_[next_other_];
  }
  /// [c]: the start of call c where nothing waits, which is the end of the one before.
  [[nodiscard]] std::span<const Nanos> unstalled() const { return unstalled_; }
  /// The first call of [from, end) that ends after `time` where nothing waits; `end`: none does.
  [[nodiscard]] CallId first_ending_after(CallId from, CallId end, Nanos time) const {
    const auto ends = unstalled_.begin() + 1;
    return static_cast<CallId>(std::upper_bound(ends + from, ends + end, time) - ends);
  }

 private:
  std::vector<CallId> others_;  ///< in order; the number of calls at the end
  std::size_t next_other_ = 0;
  std::vector<char> is_other_;
  std::vector<Nanos> unstalled_;
};

}  // namespace tidepool
