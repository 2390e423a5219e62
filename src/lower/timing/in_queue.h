// InQueue: copies in that no trigger issues and that are still to be issued, in the order of the
// calls they are for.
//
// Invariant: the first one is never issued; of the others, those issued out of turn are linked
// past.
#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "base/at.h"
#include "lower/timing_problem.h"

namespace tidepool {

/// Reused between problems. Places are positions in TimingProblem::free_ins.
class InQueue {
 public:
  static constexpr CallId kNever = std::numeric_limits<CallId>::max();

  void begin(const TimingProblem& problem) {
    p_ = &problem;
    after_.resize(problem.free_ins.size());
  }
  /// All are to be issued again.
  void begin_pass() {
    for (std::size_t k = 0; k < after_.size(); ++k) after_[k] = k + 1;
    begin_with(0);
  }

  [[nodiscard]] std::size_t first() const { return first_; }
  [[nodiscard]] std::size_t after(std::size_t place) const { return after_[place]; }
  [[nodiscard]] std::size_t end() const { return after_.size(); }
  [[nodiscard]] std::int32_t copy_at(std::size_t place) const { return p_->free_ins[place]; }
  /// The call that the first one is for; kNever: there is none.
  [[nodiscard]] CallId next_due() const { return next_due_; }
  [[nodiscard]] bool empty() const { return next_due_ == kNever; }

  /// It is issued. `before`: the place before it that is not; of the first one it does not matter.
  void remove(std::size_t place, std::size_t before) {
    if (place == first_) {
      begin_with(after_[place]);
    } else {
      after_[before] = after_[place];
    }
  }

 private:
  void begin_with(std::size_t place) {
    first_ = place;
    next_due_ = place < end() ? p_->ins[at(copy_at(place))].call : kNever;
  }

  const TimingProblem* p_ = nullptr;
  std::size_t first_ = 0;
  std::vector<std::size_t> after_;
  CallId next_due_ = kNever;
};

}  // namespace tidepool
