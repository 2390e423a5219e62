// Particle swarm: HOME's search for a policy (paper, algorithms 1 and 3), over any objective.
//
// Note [Particle swarm]. A position has one of a few choices in each dimension. Particles begin at
// random. In each iteration every particle goes through the dimensions in order: it tries the
// choice of the best particle of the last iteration and that of its own best position so far, with
// everything else as it is, and keeps the cheaper one, its own where they cost the same. Where the
// two are the same choice there is nothing to evaluate, and where the particle stands on one of
// them its cost is known: the result is that of evaluating both, always. The other choice is given
// up as soon as it is known to lose. Particles only read what the last iteration left, so any
// number of threads comes to the same result.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/stop.h"

namespace tidepool {

/// What a swarm minimises. One for each thread.
class SwarmObjective {
 public:
  virtual ~SwarmObjective() = default;
  /// At least 0; costs from `SwarmOptions::infeasible` on are of positions that are no solutions.
  /// One above `give_up_above` may be told as anything above it.
  virtual std::int64_t cost(std::span<const std::uint8_t> position, std::int64_t give_up_above) = 0;
};

/// The particles in one iteration, before they move (paper, figure 8).
struct SwarmIteration {
  std::int64_t best = 0;      ///< of all
  std::int64_t worst = 0;     ///< of those that are solutions; 0 where none is
  double average = 0;         ///< of the same
  std::int32_t feasible = 0;  ///< their number
};

struct SwarmOptions {
  std::int32_t particles = 500;
  /// At most so many; 0: until it has converged.
  std::int32_t iterations = 0;
  /// Without a limit on iterations: ends when so many have found nothing better.
  std::int32_t patience = 10;
  std::uint64_t seed = 1;
  std::size_t threads = 1;
  std::vector<std::vector<std::uint8_t>> first;  ///< positions of the first particles
  std::int64_t infeasible = std::numeric_limits<std::int64_t>::max();
  /// Begins no iteration after so many evaluations; 0: no limit.
  std::int64_t evaluations = 0;
  Stop stop;
  Stop give_up;  ///< for the objectives: what they are evaluating is of no use any more
  std::function<void(const SwarmIteration&)>
      seen;  ///< called by the thread that began, may be empty
};

struct SwarmResult {
  std::vector<std::uint8_t> position;  ///< the best one ever seen
  std::int64_t cost = 0;
  std::int32_t iterations = 0;  ///< until nothing moved any more
  std::int64_t evaluations = 0;
  std::int64_t in_finished = 0;  ///< of those, in the iterations counted
  std::int64_t skipped = 0;      ///< that the published algorithm makes beside those in them
  bool converged = false;        ///< no particle moves any more, or patience is over
  std::vector<SwarmIteration> curve;
};

using MakeObjective = std::function<std::unique_ptr<SwarmObjective>()>;

/// `choices`: of each dimension, at least one. `make` is called once for each thread, before they
/// start.
SwarmResult run_particle_swarm(std::span<const std::vector<std::uint8_t>> choices,
                               const MakeObjective& make, const SwarmOptions& options);

}  // namespace tidepool
