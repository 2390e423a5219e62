// The sharing rules said of pairs: what the holds of lower/placing/sharing.h have to come to.
#pragma once

#include "lower/placing/order.h"

namespace tidepool::testing {

/// True when the two instances may hold the same bytes: in every pair of iterations one is over
/// before the other begins, by happens-before.
inline bool may_share_by_order(const HappensBefore& order, const Instance& a, const Instance& b) {
  if (a.always || b.always) return false;
  const std::int32_t a_end = a.crosses ? 1 : 0;
  const std::int32_t b_end = b.crosses ? 1 : 0;
  for (std::int32_t shift = -1; shift <= 1; ++shift) {  // b's iteration relative to a's
    const bool a_first = order.ordered(a.end, a_end - shift, b.begin);
    const bool b_first = order.ordered(b.end, b_end + shift, a.begin);
    if (!a_first && !b_first) return false;
  }
  return true;
}

/// True when they are disjoint in list order and in the times of the steps, whose steady state
/// takes `iteration_time`: waits that make them safe to share cost nothing as long as the times
/// hold. `starts`: per step when it starts, or how late it may.
inline bool may_share_in_time(std::span<const Step> steps, std::span<const Nanos> starts,
                              Nanos iteration_time, const Instance& a, const Instance& b) {
  if (a.always || b.always) return false;
  const auto length = static_cast<std::int32_t>(steps.size());
  const auto over_before = [&](const Instance& first, std::int32_t shift, const Instance& next) {
    const Step& end = steps[static_cast<std::size_t>(first.end)];
    const std::int32_t iteration = (first.crosses ? 1 : 0) + shift;
    return first.end + iteration * length < next.begin &&
           end.end + iteration * iteration_time <= starts[static_cast<std::size_t>(next.begin)];
  };
  for (std::int32_t shift = -1; shift <= 1; ++shift) {  // b's iteration relative to a's
    if (!over_before(a, -shift, b) && !over_before(b, shift, a)) return false;
  }
  return true;
}

/// True when they are disjoint in list order, so that waits (which point backwards in the list)
/// can make them safe to share.
inline bool may_share_with_waits(std::int32_t length, const Instance& a, const Instance& b) {
  if (a.always || b.always) return false;
  const std::int32_t a_end = a.end + (a.crosses ? length : 0);
  const std::int32_t b_end = b.end + (b.crosses ? length : 0);
  for (std::int32_t shift = -1; shift <= 1; ++shift) {
    const bool overlap = a.begin <= b_end + shift * length && b.begin + shift * length <= a_end;
    if (overlap) return false;
  }
  return true;
}

}  // namespace tidepool::testing
