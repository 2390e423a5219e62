// A planner that trains in some budget trains in every larger one: addresses of random programs
// take more than their load, differently from limit to limit.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>

#include "ir/load_profile.h"
#include "planning/make_plan.h"
#include "support/random_program.h"

namespace tidepool::testing {

/// Tries programs of seeds 0 to `programs` - 1 in 40 to 100 % of their peaks; `see` gets every
/// plan. The streaming schedule is no training. Returns how many programs are trained in some
/// budget.
inline int expect_training_where_less_is_enough(
    const std::function<std::unique_ptr<Planner>()>& make, std::uint64_t programs,
    const RandomShape& shape, const std::function<void(const Planned&)>& see = {}) {
  int trained_in_any = 0;
  for (std::uint64_t seed = 0; seed < programs; ++seed) {
    FixedWorkload workload(random_program(seed, shape));
    const Program& program = **workload.program(workload.sub_batch());
    const Machine machine = random_machine(seed);
    const AccessIndex index(program);
    const Bytes peak =
        load_profile(program, index, machine.alignment(), least_workspace_algorithms(program)).peak;
    bool trained = false;
    for (Bytes percent = 40; percent <= 100; percent += 4) {
      const auto planned = make_plan(*make(), workload, machine, {peak * percent / 100, 0}, {});
      const bool trains = planned && !planned->lowered.streaming;
      EXPECT_TRUE(trains || !trained) << "seed " << seed << " in " << percent << " %";
      if (planned && see) see(*planned);
      trained = trained || trains;
    }
    trained_in_any += trained ? 1 : 0;
  }
  return trained_in_any;
}

}  // namespace tidepool::testing
