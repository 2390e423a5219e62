// LoadLimit: the limit on the memory load under which addresses fit the budget.
#pragma once

#include <algorithm>
#include <utility>

#include "base/bytes.h"

namespace tidepool {

/// Addresses need more than the load, how much more is only known when they have been looked for:
/// the limit begins at the budget and goes down by what they exceeded it.
class LoadLimit {
 public:
  /// `parts`: it goes down by no less than this part of the budget.
  explicit LoadLimit(Bytes budget, Bytes parts) : budget_(budget), least_(budget / parts + 1) {
    bytes_ = budget;
  }

  /// At most 0 when there is nothing left to try.
  [[nodiscard]] Bytes bytes() const { return bytes_; }

  /// The addresses took `excess` more than the budget; not positive: it is not known how much.
  void tighten(Bytes excess) { bytes_ -= small_ ? least_ : std::max(excess, least_); }

  /// Goes down to this where it is above.
  void at_most(Bytes bytes) { bytes_ = std::min(bytes_, std::max(bytes, Bytes{1})); }

  /// From the budget again, in the least steps whatever the excess: what one try of a packing takes
  /// above the budget may be more than the limit has to go down. False where that was so already.
  bool begin_small_steps() {
    bytes_ = budget_;
    return !std::exchange(small_, true);
  }

  /// For searches, whose addresses differ from try to try: down by most of the excess until they
  /// fit once (`excess` 0), then up by half the way to the budget where they fit, and down by half
  /// the way to where they did where they do not, for ever. What is looked for then is faster than
  /// what fitted: where it does not fit under the same limit, that is forgotten.
  void follow(Bytes excess) {
    if (excess == 0) {
      fitted_ = bytes_;
      bytes_ += std::max(2 * least_, (budget_ - bytes_) / 2);
    } else {
      tighten(fitted_ == 0 ? excess * 2 / 3 : std::min(excess, bytes_ - fitted_) / 2);
    }
    bytes_ = std::clamp(bytes_, Bytes{1}, budget_);
    if (excess > 0 && bytes_ <= fitted_) fitted_ = 0;
  }

 private:
  Bytes budget_;
  Bytes least_;
  Bytes bytes_;
  Bytes fitted_ = 0;  ///< the last limit with addresses
  bool small_ = false;
};

}  // namespace tidepool
