#include "planners/tide/tide_least_load.h"

#include "ir/load_profile.h"

namespace tidepool {

TideLeastLoad tide_least_load(const Lowering& lowering, const std::vector<std::int32_t>& algorithms,
                              TideLeastLoad known, double tolerance,
                              const LoadSearchOptions& options) {
  const Nanos compute = tidepool::compute_time(lowering.program(), algorithms);
  LoadSearch search(lowering, algorithms);
  search.add_seed(known.strategy);
  TideLeastLoad best = std::move(known);
  const Bytes precise = best.bytes / 1000;
  LoadSearchOptions one = options;
  one.tolerated_stall =
      Nanos{static_cast<Nanos::rep>(tolerance * static_cast<double>(compute.count()))};
  // Each try gets a part of what is left. A failure proves nothing, but is taken for an answer.
  constexpr double kShare = 1.0 / 6;
  Allowance allowance = options.allowance;
  Bytes low = 0;
  while (best.bytes - low > precise && !allowance.used_up()) {
    if (options.stop.requested()) break;
    const Bytes limit = low + (best.bytes - low) / 2;
    one.allowance = allowance.part(kShare);
    const bool found = search.run(limit, one) &&
                       search.iteration_time() - search.compute_time() <= one.tolerated_stall;
    allowance.spend(search.spent());
    if (found) {
      best = {limit, search.strategy()};
    } else {
      low = limit;
    }
    one.seed = hash_combine(one.seed, 1);
  }
  return best;
}

}  // namespace tidepool
