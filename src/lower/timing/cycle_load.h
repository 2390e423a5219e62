// CycleLoad: bytes on the device at each call of the iteration that a time pass is making, and of
// the one before: the static load, and copies in before the calls they are for.
//
// Invariant: the load of this iteration counts up to the call reached last. Of calls behind that it
// is the static load and what is early there (`early_`), less what `ends_` says becomes static in
// between.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/at.h"
#include "lower/timing_problem.h"

namespace tidepool {

/// Reused between problems. Not thread-safe.
class CycleLoad {
 public:
  /// In the iteration before nothing is early.
  void begin(const TimingProblem& problem) {
    static_load_ = problem.static_load;
    load_.assign(static_load_.begin(), static_load_.end());
    load_before_.resize(load_.size());
    ends_.resize(load_.size() + 2);
  }
  /// The iteration made becomes the one before.
  void begin_iteration() {
    std::swap(load_, load_before_);
    std::fill(ends_.begin(), ends_.end(), 0);
    early_ = 0;
  }

  /// The next call.
  void reach(CallId c) {
    early_ -= ends_[at(c)];
    load_[at(c)] = static_load_[at(c)] + early_;
  }
  /// The next calls, as far as their load is not above `most`, up to `end`; for none of them is
  /// there a copy-in, nor for those before them. Returns the first that is not reached.
  CallId reach_up_to(CallId first, CallId end, Bytes most) {
    const Bytes early = early_;
    CallId c = first;
    for (; c < end && static_load_[at(c)] <= most - early; ++c) {
      load_[at(c)] = static_load_[at(c)] + early;
    }
    return c;
  }
  /// A copy-in that is issued before the call `reached` takes bytes from behind the extended call
  /// `after` on, until they are part of the static load of the call it is for.
  void add_copy_in(const TimedIn& in, std::int32_t after, CallId reached) {
    const auto n = static_cast<std::int32_t>(load_.size());
    for (std::int32_t q = after + 1; q < n; ++q) load_before_[at(q)] += in.bytes;
    for (CallId q = std::max(after + 1 - n, 0); q <= reached; ++q) load_[at(q)] += in.bytes;
    early_ += in.bytes;
    ends_[at(in.call) + 1] += in.bytes;
  }

  [[nodiscard]] Bytes of(CallId c) const { return load_[at(c)]; }
  [[nodiscard]] Bytes of_extended(std::int32_t q) const {
    const auto n = static_cast<std::int32_t>(load_.size());
    return q < n ? load_before_[at(q)] : load_[at(q - n)];
  }
  [[nodiscard]] std::span<const Bytes> all() const { return load_; }

 private:
  std::span<const Bytes> static_load_;
  std::vector<Bytes> load_;
  std::vector<Bytes> load_before_;
  std::vector<Bytes> ends_;  ///< per call: bytes of copies in that became part of the static load
  Bytes early_ = 0;
};

}  // namespace tidepool
