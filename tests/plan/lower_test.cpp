#include "plan/lower.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "plan/check.h"
#include "plan/plan_json.h"
#include "sim/simulate.h"
#include "support/program_builder.h"
#include "support/random_program.h"

namespace tidepool {
namespace {

using testing::byte_a_nanosecond;
using ::testing::HasSubstr;
using testing::random_machine;
using testing::random_program;
using testing::random_strategy;
using testing::tiny_training;

constexpr Bytes kUnlimited = std::numeric_limits<Bytes>::max() / 4;

Strategy keep(const Lowering& lowering) {
  return keep_everything(lowering.program(), lowering.index(),
                         least_workspace_algorithms(lowering.program()));
}

void expect_proved(const Program& program, const Lowered& lowered, const Budget& budget) {
  EXPECT_LE(lowered.plan.device_bytes, budget.device);
  const auto proof = check(program, lowered.plan, {budget.device, budget.host});
  EXPECT_TRUE(proof) << proof.error().message;
}

TEST(Lower, WithoutALimitKeepingEverythingHasNoStallsAndNoCopiesButInputsAndResults) {
  const Program program = tiny_training();
  Lowering lowering(program, byte_a_nanosecond(64));
  const auto lowered = lowering.lower(keep(lowering), {kUnlimited, 0});
  ASSERT_TRUE(lowered) << lowered.error().message;
  expect_proved(program, *lowered, {kUnlimited, 0});
  EXPECT_EQ(lowered->iteration_time, lowered->compute_time);
  EXPECT_EQ(lowered->compute_time, Nanos{4000});
  const auto copies = std::count_if(
      lowered->plan.steady.instructions.begin(), lowered->plan.steady.instructions.end(),
      [](const Instruction& x) { return x.kind == InstructionKind::copy; });
  EXPECT_EQ(copies, 2) << "the input in, the output out";
  EXPECT_EQ(lowered->plan.program, "tiny training");
  EXPECT_FALSE(lowered->streaming);
}

TEST(Lower, TheBudgetIsHonouredDownToTheSmallestFeasibleOne) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    const Program program = random_program(seed);
    const Machine machine = random_machine(seed);
    Lowering lowering(program, machine);
    const Bytes least = smallest_budget(program, machine.alignment).bytes;
    const auto unlimited = lowering.lower(keep(lowering), {kUnlimited, 0});
    ASSERT_TRUE(unlimited);
    const Bytes most = unlimited->plan.device_bytes;
    for (const double share : {1.0, 0.75, 0.5, 0.25, 0.1, 0.0}) {
      const Bytes budget = least + static_cast<Bytes>(share * static_cast<double>(most - least));
      const auto lowered =
          lowering.lower(random_strategy(program, lowering.index(), 1 - share, seed), {budget, 0});
      ASSERT_TRUE(lowered) << budget << ": " << lowered.error().message;
      expect_proved(program, *lowered, {budget, 0});
    }
  }
}

TEST(Lower, ThePredictedTimeIsTheSimulatedOne) {
  for (std::uint64_t seed = 100; seed < 120; ++seed) {
    const Program program = random_program(seed);
    const Machine machine = random_machine(seed);
    Lowering lowering(program, machine);
    const Bytes least = smallest_budget(program, machine.alignment).bytes;
    const auto lowered =
        lowering.lower(random_strategy(program, lowering.index(), 0.6, seed), {least * 2, 0});
    ASSERT_TRUE(lowered) << seed;
    EXPECT_EQ(simulate(program, lowered->plan, machine, 28).iteration_time, lowered->iteration_time)
        << seed;
  }
}

TEST(Lower, TheSmallestFeasibleBudgetWorksByStreaming) {
  const Program program = tiny_training();
  Lowering lowering(program, byte_a_nanosecond(64));
  const Bytes least = 1024 + 512 + 2048;
  const auto lowered = lowering.lower(keep(lowering), {least, 0});
  ASSERT_TRUE(lowered) << lowered.error().message;
  EXPECT_TRUE(lowered->streaming);
  EXPECT_EQ(lowered->plan.device_bytes, least);
  expect_proved(program, *lowered, {least, 0});
}

TEST(Lower, OneByteLessIsInfeasibleAndNamesOpTensorsAndTheSmallestBudget) {
  const Program program = tiny_training();
  Lowering lowering(program, byte_a_nanosecond(64));
  const Bytes least = 1024 + 512 + 2048;
  const auto lowered = lowering.lower(keep(lowering), {least - 1, 0});
  ASSERT_FALSE(lowered);
  EXPECT_EQ(lowered.error().code, ErrorCode::infeasible);
  EXPECT_EQ(lowered.error().smallest_feasible, least);
  EXPECT_THAT(lowered.error().message, HasSubstr("3583"));
  EXPECT_THAT(lowered.error().message, HasSubstr("3584"));
  EXPECT_THAT(lowered.error().message, HasSubstr("op 'head'"));
  EXPECT_THAT(lowered.error().message, HasSubstr("'hidden'"));
  EXPECT_THAT(lowered.error().message, HasSubstr("'output'"));
  EXPECT_THAT(lowered.error().message, HasSubstr("workspace"));
}

TEST(Lower, OnRandomProgramsTheSmallestBudgetIsExact) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    const Program program = random_program(seed);
    const Machine machine = random_machine(seed);
    Lowering lowering(program, machine);
    const Bytes least = smallest_budget(program, machine.alignment).bytes;
    const auto lowered = lowering.lower(keep(lowering), {least, 0});
    ASSERT_TRUE(lowered) << lowered.error().message;
    expect_proved(program, *lowered, {least, 0});
    const auto below = lowering.lower(keep(lowering), {least - 1, 0});
    ASSERT_FALSE(below);
    EXPECT_EQ(below.error().code, ErrorCode::infeasible);
    EXPECT_EQ(below.error().smallest_feasible, least);
  }
}

TEST(Lower, NonsenseBudgetsAreInfeasibleAndNotCrashes) {
  const Program program = tiny_training();
  Lowering lowering(program, byte_a_nanosecond(64));
  for (const Bytes budget :
       {Bytes{0}, Bytes{-1}, Bytes{1}, std::numeric_limits<Bytes>::min() / 4}) {
    const auto lowered = lowering.lower(keep(lowering), {budget, 0});
    ASSERT_FALSE(lowered);
    EXPECT_EQ(lowered.error().code, ErrorCode::infeasible);
  }
}

TEST(Lower, WithoutStreamingAStrategyThatDoesNotFitSaysSo) {
  const Program program = tiny_training();
  Lowering lowering(program, byte_a_nanosecond(64));
  LowerOptions strict;
  strict.allow_streaming = false;
  const auto lowered = lowering.lower(keep(lowering), {3584, 0}, strict);
  ASSERT_FALSE(lowered);
  EXPECT_EQ(lowered.error().code, ErrorCode::infeasible);
  EXPECT_THAT(lowered.error().message, HasSubstr("this strategy does not fit"));
}

TEST(Lower, EntryLoadsAndExitStoresEveryPersistentTensorOnce) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    const Program program = random_program(seed);
    Lowering lowering(program, random_machine(seed));
    const Bytes least = smallest_budget(program, 64).bytes;
    const auto lowered =
        lowering.lower(random_strategy(program, lowering.index(), 0.5, seed), {least * 2, 0});
    ASSERT_TRUE(lowered);
    const Plan& plan = lowered->plan;
    std::vector<int> loaded(program.tensors.size());
    std::vector<int> stored(program.tensors.size());
    std::vector<int> boundary(program.tensors.size());
    for (const Instruction& x : plan.entry.instructions) {
      if (x.kind == InstructionKind::load) {
        ++loaded[static_cast<std::size_t>(plan.placements[static_cast<std::size_t>(x.to)].tensor)];
      }
    }
    for (const Instruction& x : plan.exit.instructions) {
      if (x.kind == InstructionKind::store) {
        ++stored[static_cast<std::size_t>(
            plan.placements[static_cast<std::size_t>(x.from)].tensor)];
      }
    }
    for (const PlacementId id : plan.boundary) {
      ++boundary[static_cast<std::size_t>(plan.placements[static_cast<std::size_t>(id)].tensor)];
    }
    for (std::size_t t = 0; t < program.tensors.size(); ++t) {
      const int expected = program.tensors[t].persistent ? 1 : 0;
      EXPECT_EQ(loaded[t], expected) << program.tensors[t].name;
      EXPECT_EQ(stored[t], expected) << program.tensors[t].name;
      EXPECT_EQ(boundary[t], expected) << program.tensors[t].name;
    }
  }
}

TEST(Lower, TheHostBudgetIsHonouredOrRefused) {
  int refused = 0;
  int met = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    const Program program = random_program(seed);
    Lowering lowering(program, random_machine(seed));
    const Bytes least = smallest_budget(program, 64).bytes;
    const Strategy strategy = random_strategy(program, lowering.index(), 0.7, seed);
    const auto free = lowering.lower(strategy, {least * 3, 0});
    ASSERT_TRUE(free);
    for (const double share : {1.0, 0.9, 0.7, 0.4}) {
      const Budget budget{least * 3,
                          static_cast<Bytes>(share * static_cast<double>(free->plan.host_bytes))};
      const auto lowered = lowering.lower(strategy, budget);
      if (!lowered) {
        EXPECT_LT(share, 1.0);
        EXPECT_EQ(lowered.error().code, ErrorCode::infeasible);
        EXPECT_THAT(lowered.error().message, HasSubstr("host budget"));
        ++refused;
        continue;
      }
      EXPECT_LE(lowered->plan.host_bytes, budget.host);
      expect_proved(program, *lowered, budget);
      ++met;
    }
  }
  EXPECT_GT(refused, 0);
  EXPECT_GT(met, 40);
}

TEST(Lower, AnInfeasibleHostBudgetNamesTheSmallestFeasibleOne) {
  const Program program = tiny_training();
  Lowering lowering(program, byte_a_nanosecond(64));
  const auto lowered = lowering.lower(keep(lowering), {kUnlimited, 64});
  ASSERT_FALSE(lowered);
  EXPECT_EQ(lowered.error().code, ErrorCode::infeasible);
  EXPECT_TRUE(lowered.error().smallest_feasible) << "promise 2: " << lowered.error().message;
}

TEST(Lower, IsDeterministic) {
  const Program program = random_program(11);
  const Machine machine = random_machine(11);
  const auto plan = [&] {
    Lowering lowering(program, machine);
    const Bytes least = smallest_budget(program, 64).bytes;
    auto lowered =
        lowering.lower(random_strategy(program, lowering.index(), 0.5, 11), {least * 3 / 2, 0});
    EXPECT_TRUE(lowered);
    return to_json(PlanFile{"f", program, machine, 0, 0, {}, {}, lowered->strategy, lowered->plan});
  };
  EXPECT_EQ(plan(), plan());
}

TEST(Lower, TimesItsPasses) {
  const Program program = tiny_training();
  Lowering lowering(program, byte_a_nanosecond(64));
  const auto lowered = lowering.lower(keep(lowering), {kUnlimited, 0});
  ASSERT_TRUE(lowered);
  std::vector<std::string> names;
  for (const PassTime& p : lowered->pass_times) names.push_back(p.pass);
  EXPECT_THAT(names, ::testing::ElementsAre("expand and time", "place"));
}

TEST(Lower, AddressesAreAlignedToTheMachine) {
  Machine machine = byte_a_nanosecond(512);
  const Program program = random_program(4);
  Lowering lowering(program, machine);
  const auto lowered = lowering.lower(keep(lowering), {kUnlimited, 0});
  ASSERT_TRUE(lowered);
  EXPECT_EQ(lowered->plan.alignment, 512);
  for (const Placement& p : lowered->plan.placements) EXPECT_EQ(p.offset % 512, 0);
}

}  // namespace
}  // namespace tidepool
