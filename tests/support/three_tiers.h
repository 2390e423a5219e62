// Random plans over a device, its host and a file behind the host, made as make_plan makes them,
// but by random strategies: the second planning of random programs.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "ir/load_profile.h"
#include "lower/join_tiers.h"
#include "lower/time_plan.h"
#include "support/random_plan.h"
#include "support/spaces.h"

namespace tidepool::testing {

/// `machine` with a file behind its host: links drawn from the seed, in turns in half of the cases,
/// and blocks of `block` or, where that is 0, of up to four of the machine's alignments.
inline Machine with_random_tier(const Machine& machine, std::uint64_t seed, Bytes block = 0) {
  Random random(seed ^ 0x713eULL);
  const auto speed = [&] {
    return LinkSpeed{1e8 * static_cast<double>(1 + random.below(100)),
                     Nanos{static_cast<Nanos::rep>(random.below(3000))}};
  };
  FileTierLink link;
  link.write = speed();
  link.read = speed();
  link.duplex = random.below(2) == 0;
  const Bytes drawn = machine.alignment() << random.below(3);
  link.alignment = block > 0 ? block : drawn;
  return with_file_tier(machine, link);
}

struct ThreeTiers {
  SpacedPlan whole;
  Nanos iteration_time{};  ///< predicted
  std::vector<Step> steps;
  Bytes host_of_upper = 0;  ///< bytes of the host without the file
};

/// Nothing, and a failed test, where something refuses. Nothing also where the program uses no host
/// memory.
inline std::optional<ThreeTiers> random_three_tiers(std::uint64_t seed,
                                                    const RandomShape& shape = {}) {
  auto drawn = random_plan(seed, shape);
  if (!drawn || drawn->lowered.plan.host_bytes() == 0) return std::nullopt;
  Random random(seed ^ 0x7153ULL);
  ThreeTiers t;
  t.host_of_upper = drawn->lowered.plan.host_bytes();
  t.whole.program = std::move(drawn->program);
  t.whole.machine = with_random_tier(drawn->machine, seed, shape.block);
  const Machine& machine = t.whole.machine;
  const auto host = host_program(t.whole.program, drawn->lowered.plan, machine);
  if (!host) {
    ADD_FAILURE() << "seed " << seed << ": " << host.error().message;
    return std::nullopt;
  }
  const Machine pair = host_and_file(machine);
  Lowering lowering(host->program, pair);
  const Strategy strategy =
      random_strategy(host->program, lowering.index(), random.uniform(), seed);
  const Bytes least = smallest_budget(host->program, pair.alignment()).bytes;
  const Bytes peak =
      load_profile(host->program, lowering.index(), pair.alignment(), strategy.algorithms).peak;
  const double share = random.uniform() * 1.1;
  const Bytes budget =
      least + static_cast<Bytes>(share * static_cast<double>(std::max<Bytes>(peak - least, 0)));
  const auto lower = lowering.lower(strategy, {budget, 0});
  if (!lower) {
    ADD_FAILURE() << "seed " << seed << ": " << lower.error().message;
    return std::nullopt;
  }
  auto plan = join_tiers({t.whole.program, drawn->lowered.plan, *host, lower->plan, machine});
  if (!plan) {
    ADD_FAILURE() << "seed " << seed << ": " << plan.error().message;
    return std::nullopt;
  }
  t.whole.plan = std::move(*plan);
  Bytes largest = 0;  // passes through the host at entry and exit
  for (const Tensor& x : t.whole.program.tensors) {
    if (x.persistent) largest = std::max(largest, align_up(x.bytes, pair.alignment()));
  }
  t.whole.limits =
      check_limits(machine, {drawn->budget.device, std::max({budget, largest, Bytes{1}})});
  TimedPlan timed = time_plan(t.whole.program, t.whole.plan, machine);
  t.iteration_time = timed.iteration_time;
  t.steps = std::move(timed.steps);
  return t;
}

}  // namespace tidepool::testing
