#include "planners/toolkit/move_screen.h"

#include <cmath>

namespace tidepool {

bool MoveScreen::promises(std::span<const std::pair<std::size_t, char>> before,
                          const AwayGaps& now) {
  constexpr double kFollow = 0.02;
  double lost = 0;
  for (const auto& [gap, was] : before) {
    lost += prices_.saved(gap, was) - prices_.saved(gap, now[gap]);
  }
  usual_ += kFollow * (std::abs(lost) - usual_);
  const bool promises = lost <= enough_;
  enough_ += kFollow * usual_ * (promises ? 1 - kConsidered : 1);
  return promises;
}

}  // namespace tidepool
