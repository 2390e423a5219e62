// Allowance: how far a search may go.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>

#include "base/time.h"

namespace tidepool {

/// Time, for people, or a number of evaluations, for results that repeat. One thread spends it; a
/// search gives parts of its own to the searches inside it and then spends what they have spent.
class Allowance {
 public:
  using Clock = std::chrono::steady_clock;

  /// A deadline is one.
  Allowance(Clock::time_point deadline)  // NOLINT(*-explicit-*)
      : deadline_(deadline) {}
  static Allowance of(std::int64_t evaluations) {
    Allowance result(Clock::time_point::max());
    result.evaluations_ = evaluations;
    return result;
  }
  static Allowance unlimited() { return of(kUnlimited); }
  static Allowance none() { return of(0); }

  /// No clock is asked.
  [[nodiscard]] bool repeats() const { return deadline_ == Clock::time_point::max(); }
  [[nodiscard]] bool used_up() const {
    return spent_ >= evaluations_ || (!repeats() && Clock::now() >= deadline_);
  }
  /// So much of what is left; of evaluations at least one.
  [[nodiscard]] Allowance part(double share) const {
    return take(time_left(), share, evaluations_left());
  }
  /// So much of the whole, but not more than is left.
  [[nodiscard]] Allowance slice(double share) const {
    Allowance result = take(deadline_ - begun_, share, evaluations_);
    result.deadline_ = std::min(result.deadline_, deadline_);
    result.evaluations_ = std::min(result.evaluations_, evaluations_ - spent_);
    return result;
  }
  /// What is left, but no more than so many evaluations.
  [[nodiscard]] Allowance at_most(std::int64_t evaluations) const {
    Allowance result(deadline_);
    result.evaluations_ = std::min(evaluations_left(), evaluations);
    return result;
  }
  [[nodiscard]] std::int64_t evaluations_left() const { return evaluations_ - spent_; }
  /// 0 where no clock is asked.
  [[nodiscard]] Clock::duration time_left() const {
    return repeats() ? Clock::duration::zero()
                     : std::max(deadline_ - Clock::now(), Clock::duration::zero());
  }

  void spend(std::int64_t evaluations) { spent_ += evaluations; }
  [[nodiscard]] std::int64_t spent() const { return spent_; }

 private:
  static constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();

  [[nodiscard]] Allowance take(Clock::duration time, double share, std::int64_t evaluations) const {
    Allowance result = unlimited();
    if (!repeats()) {
      result.deadline_ = result.begun_ + std::chrono::duration_cast<Clock::duration>(time * share);
    }
    if (evaluations_ != kUnlimited) {
      // A number near the largest is above it as a double.
      const auto part = share < 1
                            ? static_cast<std::int64_t>(static_cast<double>(evaluations) * share)
                            : evaluations;
      result.evaluations_ = std::max<std::int64_t>(part, 1);
    }
    return result;
  }

  Clock::time_point begun_ = Clock::now();
  Clock::time_point deadline_;
  std::int64_t evaluations_ = kUnlimited;
  std::int64_t spent_ = 0;
};

}  // namespace tidepool
