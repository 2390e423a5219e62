#include "smartpool.h"

#include <algorithm>
#include <utility>

#include "pack/lifetimes.h"

namespace tidepool::cli {

PackProblem pack_problem(std::span<const CyclicLifetime> lives, std::int32_t cycle) {
  std::vector<Bytes> sizes;
  std::vector<Lifetime> lifetimes;
  for (const CyclicLifetime& life : lives) {
    sizes.push_back(life.bytes);
    lifetimes.push_back({life.begin, life.end});
  }
  const bool wraps = std::any_of(lives.begin(), lives.end(),
                                 [&](const CyclicLifetime& life) { return life.end > cycle; });
  return wraps ? cyclic_problem(std::move(sizes), lifetimes, cycle)
               : lifetime_problem(std::move(sizes), std::move(lifetimes));
}

}  // namespace tidepool::cli
