// Optimised plans against the fluid bound: the searches do not know it, and none may be below it.
#include <gtest/gtest.h>

#include "bound/any_algorithms.h"
#include "bound/binding_op.h"
#include "bound/fluid.h"
#include "bound/some_ops.h"
#include "planners/registry.h"
#include "planning/make_plan.h"
#include "support/attacks.h"
#include "support/homes.h"
#include "support/odd_program.h"
#include "support/random_program.h"

namespace tidepool {
namespace {

/// Persistent tensors nobody changes, values that host ops use in between, overwrites, tensors far
/// smaller than their alignment: layers as in training in a third of the cases.
Program attacking_program(std::uint64_t seed) {
  if (seed % 3 == 0) {
    testing::RandomShape shape;
    shape.most_layers = seed % 2 == 0 ? 3 : 2;
    shape.most_rounds = seed % 2 == 0 ? 1 : 2;
    Program p = testing::random_program(seed, shape);
    Random random(seed);
    for (Tensor& t : p.tensors) {
      if (random.below(4) == 0) t.bytes = 8;
    }
    return p;
  }
  const auto host = seed % 3 == 1 ? testing::HostUse::none : testing::HostUse::plain;
  Program p = testing::odd_program(seed, host);
  Random random(seed);
  for (Tensor& t : p.tensors) t.bytes *= random.below(3) == 0 ? 1 : 64;
  for (Op& op : p.ops) {
    for (Algorithm& a : op.algorithms) a.time *= 8;
  }
  return p;
}

/// Links with and without latency, of both directions at once or in turns.
Machine attacking_machine(std::uint64_t seed) {
  Machine m = testing::random_machine(seed);
  Random random(seed ^ 0xa77ULL);
  if (random.below(2) == 0) m.to_host().latency = m.to_device().latency = Nanos{0};
  m.set_alignment(Bytes{64} << random.below(4));
  return m;
}

TEST(BoundedPlanner, NeverBeatsTheFluidBound) {
  std::uint64_t bounded = 0;
  std::uint64_t met = 0;
  std::uint64_t bounded_by_one = 0;  // op that binds
  const std::uint64_t programs = testing::attacks(150);
  for (std::uint64_t seed = 0; seed < programs; ++seed) {
    SCOPED_TRACE(seed);
    Program program = attacking_program(seed);
    if (seed % 4 == 0) program = testing::with_homes(std::move(program), seed);
    const Machine machine = attacking_machine(seed);
    const AccessIndex index(program);
    const auto algorithms = least_workspace_algorithms(program);
    const Bytes peak = load_profile(program, index, machine.alignment(), algorithms).peak;
    const Bytes least = smallest_budget(program, machine.alignment()).bytes;
    if (least >= peak) continue;
    Random random(seed ^ 0xb0b0ULL);
    const Budget budget{
        least + static_cast<Bytes>(random.below(static_cast<std::uint64_t>(peak - least))), 0};
    const FluidBound bound =
        fluid_bound({program, index, machine, algorithms, true}, budget.device);
    ASSERT_TRUE(bound.feasible);
    const Nanos weaker =
        binding_op_bound({program, index, machine, algorithms, true}, budget.device);
    const SomeOpsBound some =
        some_ops_bound({program, index, machine, algorithms, true}, budget.device, FluidOptions{});
    FixedWorkload workload(program);
    PlannerOptions options;
    options.seed = seed;
    options.evaluation_limit = 50;
    options.may.algorithms = false;
    bool planned_by_all = true;
    for (const char* name : {"autoswap", "tide", "auto"}) {
      SCOPED_TRACE(name);
      const auto planner = make_planner(name);
      ASSERT_TRUE(planner);
      const auto planned = make_plan(**planner, workload, machine, budget, options);
      planned_by_all = planned_by_all && planned;
      if (!planned) {
        EXPECT_EQ(planned.error().code, ErrorCode::infeasible) << planned.error().message;
        continue;
      }
      const Nanos stall = planned->lowered.iteration_time - compute_time(program, algorithms);
      EXPECT_GE(stall, bound.overhead);
      EXPECT_GE(stall, weaker);
      EXPECT_GE(stall, some.overhead);
      met += bound.overhead > Nanos{0} && stall < bound.overhead * 11 / 10;
    }
    if (!planned_by_all) continue;
    bounded_by_one += weaker > Nanos{0};
    bounded += bound.overhead > Nanos{0};
  }
  // It would prove little if there were hardly any stalls, or all plans were far above.
  if (testing::enough_for_shares(programs)) {
    EXPECT_GT(bounded, programs / 5);
    EXPECT_GT(bounded_by_one, programs / 10);
  }
  RecordProperty("bounded_by_one_op", static_cast<int>(bounded_by_one));
  RecordProperty("bounded", static_cast<int>(bounded));
  RecordProperty("within_a_tenth", static_cast<int>(met));
}

TEST(BoundedAuto, NoChoiceOfAlgorithmsBeatsTheBoundOfTheBestOfEach) {
  std::uint64_t chosen = 0;
  const std::uint64_t programs = testing::attacks(100);
  for (std::uint64_t seed = 0; seed < programs; ++seed) {
    SCOPED_TRACE(seed);
    const Program program = attacking_program(3 * seed);
    const Machine machine = attacking_machine(seed);
    const Program best_of_each = with_best_algorithms(program);
    const AccessIndex index(best_of_each);
    const std::vector<std::int32_t> only(program.ops.size(), 0);
    const Bytes least = smallest_budget(program, machine.alignment()).bytes;
    Random random(seed ^ 0xb0b0ULL);
    const Budget budget{least + least * static_cast<Bytes>(random.below(4)) / 4, 0};
    const FluidBound bound = fluid_bound({best_of_each, index, machine, only, true}, budget.device);
    ASSERT_TRUE(bound.feasible);
    const AlgorithmChoices choices = more_than_best(program, machine.alignment());
    const FluidBound tighter =
        fluid_bound({best_of_each, index, machine, only, true, 0, choices}, budget.device);
    ASSERT_TRUE(tighter.feasible);
    EXPECT_GE(tighter.overhead + Nanos{2}, bound.overhead);
    FixedWorkload workload(program);
    PlannerOptions options;
    options.seed = seed;
    options.evaluation_limit = 50;
    const auto planned = make_plan(**make_planner("auto"), workload, machine, budget, options);
    ASSERT_TRUE(planned) << planned.error().message;
    EXPECT_GE(planned->lowered.iteration_time, compute_time(best_of_each, only) + tighter.overhead);
    chosen += planned->lowered.strategy.algorithms != least_workspace_algorithms(program);
  }
  if (testing::enough_for_shares(programs)) {
    EXPECT_GT(chosen, programs / 5);
  }
}

}  // namespace
}  // namespace tidepool
