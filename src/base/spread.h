// Spread: what measured times say of their median, and what they leave open.
#pragma once

#include <cstddef>
#include <span>

#include "base/time.h"

namespace tidepool {

struct Spread {
  Nanos median{};  ///< 0 where nothing was measured
  /// Where the median would be if there were more such times: between two of them, by their ranks,
  /// whatever the distribution. Wide enough that those of two plans that are as fast overlap
  /// nineteen times in twenty; of a few times it is all of them.
  Nanos low{};
  Nanos high{};
  std::size_t count = 0;
};

Spread spread_of(std::span<const Nanos> times);

}  // namespace tidepool
