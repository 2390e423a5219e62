#include "train/verdict.h"

#include "base/invariant.h"
#include "base/median.h"
#include "base/spread.h"

namespace tidepool {
std::size_t verdict(std::span<const RanPlan> plans) {
  std::size_t fastest = plans.size();
  for (std::size_t i = 0; i < plans.size(); ++i) {
    if (plans[i].times.empty()) continue;
    if (fastest == plans.size() || median(plans[i].times) < median(plans[fastest].times)) {
      fastest = i;
    }
  }
  invariant(fastest < plans.size(), "a plan ran");
  const Nanos most = spread_of(plans[fastest].times).high;
  std::size_t chosen = fastest;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    if (plans[i].times.empty() || plans[i].predicted >= plans[chosen].predicted) continue;
    if (spread_of(plans[i].times).low <= most) chosen = i;
  }
  return chosen;
}

}  // namespace tidepool
