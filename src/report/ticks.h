// Round numbers for the marks of an axis.
#pragma once

#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"

namespace tidepool {

struct Tick {
  double value = 0;  ///< nanoseconds, bytes or a share
  std::string label;
};

/// Multiples of 1, 2 or 5 times a power of ten of one unit from 0 to `top`, about `most` of them
/// and never many more; the unit suits `top`.
std::vector<Tick> time_ticks(Nanos top, int most);
/// The same in B, KiB, MiB or GiB.
std::vector<Tick> byte_ticks(Bytes top, int most);
/// Shares from `low` to `top`, about `most` of them, in percent: "-5 %", "0 %", "5 %".
std::vector<Tick> percent_ticks(double low, double top, int most);

}  // namespace tidepool
