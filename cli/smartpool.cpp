#include "smartpool.h"

#include <algorithm>

namespace tidepool::cli {

PackProblem pack_problem(std::span<const CyclicLifetime> lives, std::int32_t cycle) {
  PackProblem problem;
  for (const CyclicLifetime& life : lives) {
    problem.sizes.push_back(life.bytes);
    problem.starts.push_back(life.begin);
  }
  if (std::all_of(lives.begin(), lives.end(),
                  [&](const CyclicLifetime& life) { return life.end <= cycle; })) {
    for (const CyclicLifetime& life : lives) problem.lifetimes.push_back({life.begin, life.end});
    return problem;
  }
  problem.neighbour_start.push_back(0);
  for (std::size_t i = 0; i < lives.size(); ++i) {
    for (std::size_t j = 0; j < lives.size(); ++j) {
      if (i != j && overlap(lives[i], lives[j], cycle)) {
        problem.neighbours.push_back(static_cast<std::int32_t>(j));
      }
    }
    problem.neighbour_start.push_back(static_cast<std::int32_t>(problem.neighbours.size()));
  }
  return problem;
}

}  // namespace tidepool::cli
