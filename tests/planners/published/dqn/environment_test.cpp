#include "planners/published/dqn/environment.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/load_profile.h"
#include "lower/budget.h"
#include "support/program_builder.h"
#include "support/swap_programs.h"

namespace tidepool {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;
using enum AccessMode;

constexpr Nanos kSecond{1'000'000'000};

/// Figure 4 of the paper: nodes 1 and 2 allocate and write x0, 3 reads it, 4 and 5 do something
/// else, and so on to the op that reads x0 again. Every op takes a second, a copy of x0 one and a
/// half. Node 4 needs `workspace` bytes more.
struct Figure4 {
  explicit Figure4(Bytes workspace) {
    testing::ProgramBuilder b("figure 4");
    const TensorId x0 = b.tensor("x0", 1500);
    const TensorId w = b.tensor("w", 1, true);
    b.device("write", {{x0, write}}, kSecond);
    b.device("read", {{x0, read}}, kSecond);
    b.device("fourth", {{w, read}}, kSecond, workspace);
    b.device("fifth", {{w, read}}, kSecond);
    b.device("peak", {{w, read}}, kSecond, 1000);
    for (int i = 0; i < 4; ++i) b.device(fmt::format("backward {}", i), {{w, read}}, kSecond);
    b.device("read again", {{x0, read}, {w, update}}, kSecond);
    program = b.build();
    machine = testing::byte_a_nanosecond();
    machine.to_host() = machine.to_device() = {1000, Nanos{0}};
  }

  Program program;
  Machine machine;
};

/// Memory for x0 and w, so that "peak" does not fit beside x0.
constexpr Bytes kLimit = 1501;

double offload_in_the_third_node(dqn::Environment& environment) {
  environment.begin(kLimit);
  EXPECT_EQ(environment.state().current, 3);
  EXPECT_THAT(environment.state().valid, Contains(3));
  return environment.act(3);
}

TEST(Figure4, AnOffloadMovesTheAgentToTheNodeAfterItsEnd) {
  const Figure4 example(0);
  const Lowering lowering(example.program, example.machine);
  dqn::Environment environment(lowering, std::vector<std::int32_t>(10, 0), kLimit,
                               {.remove = false});
  const double reward = offload_in_the_third_node(environment);
  EXPECT_TRUE(environment.feasible());
  EXPECT_EQ(environment.state().current, 5);
  EXPECT_EQ(reward, 0);
}

TEST(Figure4, WhereMemoryIsAtTheLimitItIsWaitedFor) {
  const Figure4 example(100);
  const Lowering lowering(example.program, example.machine);
  dqn::Environment environment(lowering, std::vector<std::int32_t>(10, 0), kLimit,
                               {.remove = false});
  const double reward = offload_in_the_third_node(environment);
  EXPECT_TRUE(environment.feasible());
  EXPECT_EQ(environment.state().current, 4);
  EXPECT_DOUBLE_EQ(reward, -0.05) << "half a second of ten";
}

/// Random actions to the end. Returns the sum of the rewards.
double play(dqn::Environment& environment, Bytes limit, Random& random) {
  double sum = 0;
  environment.begin(limit);
  while (!environment.terminal()) {
    const auto& valid = environment.state().valid;
    const std::uint64_t drawn = random.below(valid.size() + 1);
    sum += environment.act(drawn == 0 ? 0 : valid[drawn - 1]);
  }
  return sum;
}

TEST(Environment, TheReturnOfAnEpisodeIsMinusTheOverhead) {
  constexpr double kPenalty = 3;
  int feasible = 0;
  int out_of_memory = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    const Program program = testing::large_program(seed);
    const Machine machine = testing::random_machine(seed + 100);
    const Lowering lowering(program, machine);
    const auto algorithms = least_workspace_algorithms(program);
    const Bytes peak = load_profile(program, lowering.index(), 64, algorithms).peak;
    dqn::Environment environment(lowering, algorithms, peak / 2, {.penalty = kPenalty});
    Random random(seed);
    for (const Bytes limit : {peak * 6 / 10, peak * 8 / 10}) {
      environment.begin(limit);
      if (environment.terminal()) continue;
      const double sum = play(environment, limit, random);
      EXPECT_NEAR(sum, environment.episode_return(), 1e-9);
      if (!environment.feasible()) {
        ++out_of_memory;
        EXPECT_LE(sum, -kPenalty + 1e-9);
        continue;
      }
      ++feasible;
      dqn::IterationSimulator simulator(program, lowering.index(), machine);
      const auto after = simulator.run(environment.strategy(), environment.departures(), limit);
      EXPECT_EQ(after.blocked, kNone);
      const auto unlimited = static_cast<double>(environment.unlimited_time().count());
      EXPECT_NEAR(sum, 1 - static_cast<double>(after.time.count()) / unlimited, 1e-9);
    }
  }
  EXPECT_GT(feasible, 20);
  EXPECT_GT(out_of_memory, 0);
}

/// What the evaluator has for the same decisions is not slower, beyond what another order of copies
/// makes: mostly it is faster.
TEST(Environment, CompleteEpisodesAreStrategiesThatRunInTheLimit) {
  int made = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    const Program program = testing::large_program(seed);
    const Machine machine = testing::random_machine(seed + 100);
    Lowering lowering(program, machine);
    const auto algorithms = least_workspace_algorithms(program);
    const Bytes peak = load_profile(program, lowering.index(), 64, algorithms).peak;
    dqn::Environment environment(lowering, algorithms, peak / 2, {});
    Random random(seed);
    play(environment, peak * 7 / 10, random);
    if (!environment.feasible()) continue;
    ++made;
    EvaluateOptions options;
    options.load_limit = peak * 7 / 10;
    EXPECT_TRUE(lowering.evaluator().evaluate(environment.strategy(), options).feasible);
  }
  EXPECT_GT(made, 20);
}

TEST(Environment, DoingNothingWhereMemoryIsShortEndsTheEpisode) {
  const Figure4 example(0);
  const Lowering lowering(example.program, example.machine);
  dqn::Environment environment(lowering, std::vector<std::int32_t>(10, 0), kLimit,
                               {.remove = false, .penalty = 2});
  environment.begin(kLimit);
  EXPECT_TRUE(environment.must_act());
  EXPECT_EQ(environment.act(0), -2);
  EXPECT_TRUE(environment.terminal());
  EXPECT_FALSE(environment.feasible());
}

TEST(Environment, ARemovedTensorCostsItsRecomputation) {
  Figure4 example(0);
  const Lowering lowering(example.program, example.machine);
  dqn::Environment environment(lowering, std::vector<std::int32_t>(10, 0), kLimit, {});
  environment.begin(kLimit);
  ASSERT_THAT(environment.state().valid, ElementsAre(3, 4));
  EXPECT_EQ(environment.events().nodes[4].action, dqn::ActionKind::remove);
  EXPECT_DOUBLE_EQ(environment.act(4), -0.1) << "\"write\" runs again, a second of ten";
  EXPECT_TRUE(environment.feasible());
}

TEST(Environment, AnEpisodeWithNothingToDoIsOverAtOnce) {
  const Figure4 example(0);
  const Lowering lowering(example.program, example.machine);
  dqn::Environment environment(lowering, std::vector<std::int32_t>(10, 0), kLimit, {});
  environment.begin(kNoDeviceLimit);
  EXPECT_TRUE(environment.feasible());
  EXPECT_EQ(environment.episode_return(), 0);
  EXPECT_THAT(environment.state().valid, Not(Contains(3)));
}

}  // namespace
}  // namespace tidepool
