#include "smartpool.h"

#include "plan/pack/lifetimes.h"

namespace tidepool::cli {

PackProblem pack_problem(std::span<const CyclicLifetime> lives, std::int32_t cycle) {
  std::vector<Bytes> sizes;
  std::vector<Lifetime> lifetimes;
  for (const CyclicLifetime& life : lives) {
    sizes.push_back(life.bytes);
    lifetimes.push_back({life.begin, life.end});
  }
  return cyclic_problem(std::move(sizes), lifetimes, cycle);
}

}  // namespace tidepool::cli
