#include "pack/squeaky_wheel.h"

#include <algorithm>
#include <limits>

#include "base/random.h"

namespace tidepool {

bool squeak(const PackProblem& problem, std::vector<std::int32_t>& order, Bytes target,
            std::uint64_t seed, int rounds, const Stop& stop, Packing& best) {
  Random random(seed);
  bool better = false;
  for (int round = 0; round < rounds && best.footprint > target && !stop.requested(); ++round) {
    Packing packing = place_in_order(problem, order, false);
    if (packing.footprint == std::numeric_limits<Bytes>::max()) break;  // stopped
    for (std::size_t k = 0; k < order.size(); ++k) {
      const auto i = static_cast<std::size_t>(order[k]);
      if (packing.offsets[i] + problem.sizes[i] <= target) continue;
      const auto at = order.begin() + static_cast<std::ptrdiff_t>(k);
      std::rotate(order.begin() + static_cast<std::ptrdiff_t>(random.below(k + 1)), at, at + 1);
    }
    if (packing.footprint < best.footprint) {
      best = std::move(packing);
      better = true;
    }
  }
  return better;
}

}  // namespace tidepool
