// The axis of overheads in a picture: which part of it is shown, where a value is, which are
// marked.
#pragma once

#include <vector>

#include "report/ticks.h"

namespace tidepool {

/// Shows 0, the values from `low` to `high` (shares above -1, in any order around 0), and some room
/// beside them. Linear; where a slow plan would flatten the others, logarithmic in the time of an
/// iteration, which is 1 + overhead.
class OverheadAxis {
 public:
  OverheadAxis(double low, double high);

  [[nodiscard]] bool logarithmic() const { return logarithmic_; }
  /// 0 at the lower end of the axis, 1 at the upper.
  [[nodiscard]] double place(double share) const;
  /// From the lowest up; on a logarithmic axis at least `apart` from each other, as places.
  [[nodiscard]] std::vector<Tick> ticks(int most, double apart) const;

 private:
  [[nodiscard]] double scaled(double share) const;
  [[nodiscard]] double unscaled(double scaled) const;

  bool logarithmic_ = false;
  double low_ = 0;  ///< scaled, as are all ends: room in other coordinates may be beyond -100 %
  double high_ = 1;
};

}  // namespace tidepool
