#include "base/spread.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace tidepool {

Spread spread_of(std::span<const Nanos> times) {
  if (times.empty()) return {};
  constexpr double kDeviations = 1.39;  // 1.96 for the difference of two
  std::vector<Nanos> sorted(times.begin(), times.end());
  std::ranges::sort(sorted);
  const auto count = static_cast<double>(sorted.size());
  const double rank = std::max((count - kDeviations * std::sqrt(count)) / 2, 0.0);
  const auto below = std::min(static_cast<std::size_t>(rank), (sorted.size() - 1) / 2);
  return {sorted[sorted.size() / 2], sorted[below], sorted[sorted.size() - 1 - below],
          sorted.size()};
}

}  // namespace tidepool
