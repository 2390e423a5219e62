// least: how the smallest budgets that errors and reports name are found.
#pragma once

#include <optional>

#include "base/bytes.h"

namespace tidepool {

/// The least multiple of `step` that is enough, searched upward from `low` (the least there can
/// be): in steps that double, then between the last two by halves. Nothing where none up to `high`
/// is. What is returned was tried and is enough; unless it is `low`, one step less was tried and is
/// not. `enough` may be true of less than what it is false of, as it is of addresses.
template <class Enough>
std::optional<Bytes> least_enough(Bytes low, Bytes high, Bytes step, const Enough& enough) {
  low = align_up(low, step);
  if (low > high) return std::nullopt;
  if (enough(low)) return low;
  Bytes distance = step;
  Bytes found = low;
  do {
    if (low == high) return std::nullopt;
    found = high - low > distance ? low + distance : high;
    if (enough(found)) break;
    low = found;
    distance *= 2;
  } while (true);
  while (found - low > step) {
    const Bytes middle = align_up(low + (found - low) / 2, step);
    (enough(middle) ? found : low) = middle;
  }
  return found;
}

}  // namespace tidepool
