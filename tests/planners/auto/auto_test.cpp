#include "planners/auto/auto.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "ir/load_profile.h"
#include "planners/registry.h"
#include "support/program_builder.h"
#include "support/random_program.h"

namespace tidepool {
namespace {

/// A chain of values, each made of the one before and read again in reverse order.
Program auto_chain(int length, Nanos op_time) {
  using enum AccessMode;
  testing::ProgramBuilder b("chain");
  std::vector<TensorId> x;
  for (int i = 0; i < length; ++i) {
    x.push_back(b.tensor("x" + std::to_string(i), 1 << 20));
    std::vector<Access> accesses{{x.back(), write}};
    if (i > 0) accesses.push_back({x[static_cast<std::size_t>(i) - 1], read});
    b.device("forward" + std::to_string(i), accesses, op_time);
    b.last().random = i == 0;
  }
  const TensorId g = b.tensor("g", 1 << 20);
  b.device("turn", {{g, write}, {x.back(), read}}, op_time);
  for (int i = length - 1; i-- > 0;) {
    b.device("backward" + std::to_string(i), {{g, update}, {x[static_cast<std::size_t>(i)], read}},
             op_time);
  }
  return b.build();
}

Machine auto_machine(double bytes_per_second) {
  Machine m;
  m.set_links({bytes_per_second, Nanos{0}}, {bytes_per_second, Nanos{0}});
  return m;
}

Planned auto_plan(const Program& program, const Machine& m, Bytes budget, int threads = 2) {
  FixedWorkload workload(program);
  PlannerOptions options;
  options.evaluation_limit = 4000;
  auto planned = make_plan(*make_auto(threads), workload, m, {budget, 0}, options);
  EXPECT_TRUE(planned) << planned.error().message;
  return std::move(*planned);
}

std::int64_t decided(const Strategy& strategy, Decision decision) {
  return std::count(strategy.gaps.begin(), strategy.gaps.end(), decision);
}

// An op takes 1 ms; its output takes as long at 1 GiB/s or so.
constexpr Nanos kAutoOp = std::chrono::milliseconds(1);
constexpr Bytes kAutoBudget = 10 * (1 << 20);

TEST(Auto, SwapsWhereTheLinkIsFast) {
  const Planned p = auto_plan(auto_chain(24, kAutoOp), auto_machine(8e9), kAutoBudget);
  EXPECT_GT(decided(p.lowered.strategy, Decision::swap), 8);
  EXPECT_EQ(decided(p.lowered.strategy, Decision::recompute), 0);
}

TEST(Auto, RecomputesWhereTheLinkIsSlow) {
  const Program program = auto_chain(24, kAutoOp);
  const Planned p = auto_plan(program, auto_machine(2e7), kAutoBudget);
  EXPECT_GT(decided(p.lowered.strategy, Decision::recompute), 8);
  EXPECT_EQ(decided(p.lowered.strategy, Decision::swap), 0);
  // No more than the forward pass once more.
  EXPECT_LE(p.lowered.iteration_time - 2 * 24 * kAutoOp, 24 * kAutoOp);
}

TEST(Auto, DoesBothWhereOneIsNotEnough) {
  const Program program = auto_chain(24, kAutoOp);
  const Planned p = auto_plan(program, auto_machine(3e8), kAutoBudget);
  EXPECT_GT(decided(p.lowered.strategy, Decision::recompute), 0);
  EXPECT_GT(decided(p.lowered.strategy, Decision::swap), 0);
}

TEST(Auto, SwapsOnlyWhereNothingMayRunAgain) {
  Program program = auto_chain(24, kAutoOp);
  for (Op& op : program.ops) op.recomputable = false;
  const Planned p = auto_plan(program, auto_machine(2e7), kAutoBudget);
  EXPECT_EQ(decided(p.lowered.strategy, Decision::recompute), 0);
  EXPECT_GT(decided(p.lowered.strategy, Decision::swap), 8);
}

TEST(Auto, SwapsWeightsWhereNothingElseHelps) {
  using enum AccessMode;
  testing::ProgramBuilder b("weights");
  std::vector<TensorId> w;
  for (int i = 0; i < 6; ++i) w.push_back(b.tensor("w" + std::to_string(i), 1 << 20, true));
  for (int i = 0; i < 6; ++i) {
    b.device("step" + std::to_string(i), {{w[static_cast<std::size_t>(i)], update}}, kAutoOp);
  }
  const Planned p = auto_plan(b.build(), auto_machine(1e9), 2 << 20);
  EXPECT_GT(decided(p.lowered.strategy, Decision::swap), 3);
  EXPECT_LE(p.lowered.plan.device_bytes(), 2 << 20);
}

TEST(Auto, IsNeverSlowerThanAnyPlannerItStartsFrom) {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    const Program program = testing::random_program(seed);
    const Machine m = testing::random_machine(seed);
    const AccessIndex index(program);
    const Bytes peak =
        load_profile(program, index, m.alignment(), least_workspace_algorithms(program)).peak;
    const Bytes least = smallest_budget(program, m.alignment()).bytes;
    FixedWorkload workload(program);
    PlannerOptions options;
    options.evaluation_limit = 300;
    options.may.algorithms = false;
    const Budget budget{(least + peak) / 2, 0};
    const auto best = make_plan(*make_auto(), workload, m, budget, options);
    ASSERT_TRUE(best) << best.error().message;
    for (const PlannerInfo& info : planner_list()) {
      if (info.name == "auto" || info.name == "tide" || info.name == "random") continue;
      SCOPED_TRACE(std::string(info.name) + " " + std::to_string(seed));
      const auto other = make_plan(*info.make(), workload, m, budget, options);
      if (!other) continue;
      EXPECT_LE(best->lowered.iteration_time, other->lowered.iteration_time);
    }
  }
}

TEST(Auto, IsTheSameOnAnyNumberOfThreads) {
  const Program program = auto_chain(16, kAutoOp);
  const Planned one = auto_plan(program, auto_machine(3e8), kAutoBudget / 2, 1);
  const Planned three = auto_plan(program, auto_machine(3e8), kAutoBudget / 2, 3);
  EXPECT_EQ(one.lowered.strategy.gaps, three.lowered.strategy.gaps);
}

}  // namespace
}  // namespace tidepool
