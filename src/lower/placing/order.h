// Happens-before among the steps of a list that is issued once an iteration.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "lower/placing/instances.h"

namespace tidepool {

/// What has certainly completed when a step starts, from stream order and waits alone (vector
/// clocks over three iterations, so that knowledge from the previous ones is included).
class HappensBefore {
 public:
  explicit HappensBefore(std::span<const Step> steps);

  /// Step `end` of iteration `shift` (<= 0 relative to `begin`'s) is over before `begin` starts.
  [[nodiscard]] bool ordered(std::int32_t end, std::int32_t shift, std::int32_t begin) const {
    const auto stream = static_cast<std::size_t>(stream_[static_cast<std::size_t>(end)]);
    return knows_[static_cast<std::size_t>(begin)][stream] >= end + shift * length_;
  }
  [[nodiscard]] std::int32_t length() const { return length_; }

 private:
  std::int32_t length_;
  std::vector<StreamId> stream_;
  /// Per step and stream: the last step known to be over; previous iterations count negative.
  std::vector<std::array<std::int32_t, kMaxStreams>> knows_;
};

}  // namespace tidepool
