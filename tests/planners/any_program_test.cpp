// Every planner on programs of shapes that no network has: host ops that update and release, bytes
// that stay taken, ops of no time, guards, links that share a bus or take turns. `make_plan` proves
// each plan; here it is also no faster than any can be, and takes what is predicted.
#include <gtest/gtest.h>

#include "bound/binding_op.h"
#include "bound/fluid.h"
#include "bound/some_ops.h"
#include "lower/overhead.h"
#include "planners/registry.h"
#include "planners/settings.h"
#include "planning/make_plan.h"
#include "sim/simulate.h"
#include "support/attacks.h"
#include "support/homes.h"
#include "support/odd_program.h"
#include "support/random_program.h"

namespace tidepool {
namespace {

Program program_of(std::uint64_t seed) {
  Random random(seed ^ 0xa11ULL);
  if (seed % 4 == 0) {
    Program p = testing::random_program(seed, {4, 512, 2});
    return seed % 8 == 0 ? testing::with_homes(std::move(p), seed) : p;
  }
  const testing::OddShape shape{3 + random.below(6), 10 + random.below(30), random.below(2) == 0};
  Program p = testing::odd_program(seed, testing::HostUse::plain, shape);
  for (Op& op : p.ops) {
    if (random.below(6) == 0) op.algorithms[0].time = Nanos{0};
  }
  return p;
}

/// One in three has both directions on one bus, which may be slower than either.
Machine machine_of(std::uint64_t seed) {
  Machine m = testing::random_machine(seed);
  Random random(seed ^ 0xb05ULL);
  if (random.below(3) > 0) return m;
  m.set_duplex(true);
  m.buses = {m.to_host().bytes_per_second * (0.3 + random.uniform())};
  for (Link& link : m.links) link.bus = 0;
  return m;
}

class AnyProgram : public ::testing::TestWithParam<PlannerInfo> {};

TEST_P(AnyProgram, IsPlannedProvedAndTimedRight) {
  std::uint64_t planned = 0;
  const std::uint64_t programs = testing::attacks(60);
  for (std::uint64_t seed = 0; seed < programs; ++seed) {
    SCOPED_TRACE(seed);
    const Program program = program_of(seed);
    const Machine machine = machine_of(seed);
    const AccessIndex index(program);
    const Bytes alignment = machine.alignment();
    const Bytes least = std::max<Bytes>(1, smallest_budget(program, alignment).bytes);
    const auto usual = least_workspace_algorithms(program);
    const Bytes peak = load_profile(program, index, alignment, usual).peak;
    Random random(seed ^ 0xb0b0ULL);
    const Budget budget{
        least + static_cast<Bytes>(random.uniform() * 1.2 *
                                   static_cast<double>(std::max<Bytes>(peak - least, 0))),
        0};
    FixedWorkload workload(program);
    PlannerOptions options;
    options.seed = seed;
    options.evaluation_limit = 20;
    options.may.algorithms = false;
    if (reads(GetParam().name, "pso_particles")) {
      options.values.set("pso_particles", 4);
      options.values.set("pso_iterations", 3);
    }
    const auto made = make_plan(*GetParam().make(), workload, machine, budget, options);
    if (!made) {
      // Bytes that may not move lie in the way, or the planner keeps what does not fit.
      EXPECT_EQ(made.error().code, ErrorCode::infeasible) << made.error().message;
      continue;
    }
    ++planned;
    const Lowered& lowered = made->lowered;
    const Nanos simulated = long_run(program, lowered.plan, machine).iteration_time;
    // Shared buses round each copy up.
    const auto ops = static_cast<Nanos::rep>(lowered.plan.steady.instructions.size());
    const Nanos off{machine.shares_buses() ? 1000 + ops : 0};
    EXPECT_LE(simulated, lowered.iteration_time + off);
    EXPECT_GE(simulated, lowered.iteration_time - off);
    EXPECT_GE(lowered.iteration_time,
              unlimited_time(program, machine, lowered.strategy.algorithms));
    const Nanos stall = lowered.iteration_time - compute_time(program, lowered.strategy.algorithms);
    const FluidProblem problem{program, index, machine, lowered.strategy.algorithms, true};
    EXPECT_GE(stall, binding_op_bound(problem, budget.device));
    if (const FluidBound bound = fluid_bound(problem, budget.device); bound.feasible) {
      EXPECT_GE(stall, bound.overhead);
      EXPECT_GE(stall, some_ops_bound(problem, budget.device, FluidOptions{}).overhead);
    }
  }
  EXPECT_GT(planned, programs / 6);
}

std::vector<PlannerInfo> those_that_learn_nothing() {
  std::vector<PlannerInfo> all;
  for (const PlannerInfo& info : planner_list()) {
    if (!info.learns) all.push_back(info);
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(, AnyProgram, ::testing::ValuesIn(those_that_learn_nothing()),
                         [](const auto& tested) {
                           std::string name(tested.param.name);
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace tidepool
