// HOME: which feature maps stay, are swapped or are recomputed, by a particle swarm over a time
// cost model of the whole network.
//
// Source: He, Chen, Chen, Li, Yang, Chen, Shou: HOME: A Holistic GPU Memory Management Framework
// for Deep Learning, IEEE Transactions on Computers 2023, sections 3 and 4.5 to 4.7.
//
// Its parts here: the profiler's information is the Program (sizes, times, dependencies) and the
// Machine (speeds of the link); `policy_evaluator` is the evaluator, `particle_swarm` with
// `search_policy` the policy maker, and the general schedule the executor: copies in are triggered
// where HOME's begin.
//
// What the paper leaves open, or this system sees otherwise:
// - Feature maps are gaps, see Note [Feature maps]; when copies begin and who waits for memory is
//   in Note [HOME's clocks].
// - The paper runs 500 iterations of 500 particles; that size is run on request. Otherwise the
//   swarm ends when it has converged, and has fewer particles for more than 100 feature maps.
// - One particle begins with everything swapped and one with everything recomputed
//   (unless `pso_random_start`); the paper's all begin at random.
// - Where everything fits nothing is searched for.
// - What is made again for a later op, too, HOME frees where it does not fit. The executor keeps
//   it, so the planner searches by that rule (RegeneratedMaps::stay).
// - The model knows no addresses. Where the policy has none in the budget, or they cost time, the
//   memory limit is tightened and the search repeated, from random particles and the last policy.
// - HOME knows no budget of the host's memory. The search does not either: where there is one, a
//   policy whose copies take more of the host than that has no plan.
// - Where no policy fits HOME cannot train. Here the streaming schedule takes its place, and a note
//   says so; another one says where the search was ended before it found one.
#pragma once

#include "planners/planner.h"
#include "planners/published/home/particle_swarm.h"
#include "planners/published/home/policy_evaluator.h"

namespace tidepool {

std::unique_ptr<Planner> make_home();

struct SwarmSize {
  std::int32_t particles = 0;   ///< 0: as many as the planner thinks enough
  std::int32_t iterations = 0;  ///< 0: until it has converged
  /// One particle begins with everything swapped and one with everything recomputed.
  bool anchored = true;

  bool operator==(const SwarmSize&) const = default;
};

std::span<const OptionRecord> home_options();
SwarmSize swarm_size_of(const OptionValues& values);

/// The policy maker: the least cost (PolicyEvaluator::number) under a memory limit. There must be
/// feature maps. `options.infeasible` is set here; `anchored` puts the two particles before those
/// that are given.
SwarmResult search_policy(const FeatureMaps& maps, const PolicyModel& model, Bytes limit,
                          RegeneratedMaps regenerated, SwarmOptions options, bool anchored);

/// The published number of particles, or fewer where an iteration of so many would take long.
std::int32_t enough_particles(std::size_t maps);

/// The executor's view of a policy.
Result<Strategy> policy_strategy(const Program& program, const AccessIndex& index,
                                 std::vector<std::int32_t> algorithms, const FeatureMaps& maps,
                                 std::span<const std::uint8_t> policy);

}  // namespace tidepool
