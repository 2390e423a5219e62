#include "train/verdict.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/invariant.h"
#include "base/median.h"

namespace tidepool {
namespace {

/// Where the median would be if there were more such times: between two of them, by their ranks,
/// whatever the distribution. Wide enough that those of two plans that are as fast overlap nineteen
/// times in twenty.
struct Interval {
  explicit Interval(std::span<const Nanos> times) {
    constexpr double kDeviations = 1.39;  // 1.96 for the difference of two
    std::vector<Nanos> sorted(times.begin(), times.end());
    std::ranges::sort(sorted);
    const auto count = static_cast<double>(sorted.size());
    const double rank = std::max((count - kDeviations * std::sqrt(count)) / 2, 0.0);
    const auto below = std::min(static_cast<std::size_t>(rank), (sorted.size() - 1) / 2);
    low = sorted[below];
    high = sorted[sorted.size() - 1 - below];
  }
  Nanos low{};
  Nanos high{};
};

}  // namespace

std::size_t verdict(std::span<const RanPlan> plans) {
  std::size_t fastest = plans.size();
  for (std::size_t i = 0; i < plans.size(); ++i) {
    if (plans[i].times.empty()) continue;
    if (fastest == plans.size() || median(plans[i].times) < median(plans[fastest].times)) {
      fastest = i;
    }
  }
  invariant(fastest < plans.size(), "a plan ran");
  const Nanos most = Interval(plans[fastest].times).high;
  std::size_t chosen = fastest;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    if (plans[i].times.empty() || plans[i].predicted >= plans[chosen].predicted) continue;
    if (Interval(plans[i].times).low <= most) chosen = i;
  }
  return chosen;
}

}  // namespace tidepool
