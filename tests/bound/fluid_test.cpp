#include "bound/fluid.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <thread>

#include "ir/load_profile.h"
#include "plan/lower.h"
#include "support/program_builder.h"
#include "support/random_program.h"
#include "support/swap_programs.h"

namespace tidepool {
namespace {

using testing::byte_a_nanosecond;

/// A tensor of 4096 B between two ops of 1000 ns, with others in between that need as much.
Program one_gap(int ops_between) {
  using enum AccessMode;
  testing::ProgramBuilder b;
  const TensorId big = b.tensor("big", 4096);
  TensorId chain = b.tensor("x0", 64);
  b.device("first", {{big, write}, {chain, write}}, Nanos{1000});
  for (int i = 1; i <= ops_between; ++i) {
    const TensorId next = b.tensor(fmt::format("x{}", i), 64);
    const bool peak = i == (ops_between + 1) / 2;
    b.device(fmt::format("op{}", i), {{chain, read}, {next, write}}, Nanos{1000}, peak ? 4096 : 0);
    chain = next;
  }
  b.device("last", {{chain, read}, {big, read}}, Nanos{1000});
  return b.build();
}

FluidBound bound(const Program& program, const Machine& machine, Bytes limit) {
  const AccessIndex index(program);
  const auto algorithms = least_workspace_algorithms(program);
  return fluid_bound({program, index, machine, algorithms}, limit);
}

TEST(FluidBound, NothingStallsWhereEverythingFits) {
  const Program program = one_gap(9);
  const FluidBound b = bound(program, byte_a_nanosecond(64), 9000);
  EXPECT_TRUE(b.feasible);
  EXPECT_EQ(b.overhead, Nanos{0});
}

TEST(FluidBound, ACopyThatFitsBetweenIsFree) {
  // 4 ops before the peak, 4096 ns to copy out: out in time, and back in time.
  const FluidBound b = bound(one_gap(11), byte_a_nanosecond(64), 4096 + 512);
  EXPECT_TRUE(b.feasible);
  EXPECT_EQ(b.overhead, Nanos{0});
}

TEST(FluidBound, WhatDoesNotFitBetweenStalls) {
  // One op before the peak and one behind: 3096 of 4096 bytes are still there on either side.
  const Program program = one_gap(3);
  const FluidBound b = bound(program, byte_a_nanosecond(64), 4096 + 128);
  EXPECT_TRUE(b.feasible);
  EXPECT_NEAR(static_cast<double>(b.overhead.count()), 2 * 3096, 1100);
  const AccessIndex index(program);
  EXPECT_NEAR(b.share[static_cast<std::size_t>(index.first_gap(0))], 1, 0.05);
}

TEST(FluidBound, BelowAWorkingSetNothingHelps) {
  EXPECT_FALSE(bound(one_gap(3), byte_a_nanosecond(64), 4096).feasible);
}

TEST(FluidBound, NoStrategyIsFasterOnRandomPrograms) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    const Program program = testing::random_program(seed);
    const Machine machine = testing::random_machine(seed);
    Lowering lowering(program, machine);
    const auto algorithms = least_workspace_algorithms(program);
    const LoadProfile profile = load_profile(program, lowering.index(), 64, algorithms);
    const Bytes least = smallest_budget(program, 64).bytes;
    Random random(seed);
    const Bytes limit =
        least + static_cast<Bytes>(random.uniform() * static_cast<double>(profile.peak - least));
    const FluidBound b = fluid_bound({program, lowering.index(), machine, algorithms}, limit);
    ASSERT_TRUE(b.feasible);
    for (std::uint64_t k = 0; k < 20; ++k) {
      Strategy strategy = lowering.everything_away(algorithms);
      for (Decision& d : strategy.gaps) {
        if (d == Decision::swap && random.below(20) < k) d = Decision::keep;
      }
      const Evaluation e = lowering.evaluator().evaluate(strategy, {limit});
      if (!e.feasible) continue;
      EXPECT_GE(e.stall(), b.overhead);
    }
  }
}

/// Clp's presolve called these feasible programs infeasible.
TEST(FluidBound, PresolveHasNotTheLastWord) {
  const Program program = testing::SwapExample::make();
  const FluidBound b = bound(program, testing::two_mib_a_ms(), testing::mib(117));
  EXPECT_TRUE(b.feasible);
  EXPECT_EQ(b.overhead, Nanos{0});
  const FluidBound less = bound(program, testing::two_mib_a_ms(), testing::mib(75));
  EXPECT_TRUE(less.feasible);
  EXPECT_GT(less.overhead, testing::ms(30));
  EXPECT_LE(less.overhead, testing::ms(40)) << "AutoSwap's plan has that much";
}

/// Clp used to put its own handler in place of the program's while it solved: a Ctrl-C then ended a
/// slice of the solving and was lost.
TEST(FluidBound, TheProgramsSignalHandlerStaysWhileItSolves) {
  const auto handler = [](int) {};
  const auto before = std::signal(SIGINT, handler);
  std::atomic<bool> over{false};
  std::atomic<int> looks{0};
  std::atomic<bool> replaced{false};
  std::thread watcher([&] {
    for (; !over; ++looks) {
      struct sigaction now {};
      ::sigaction(SIGINT, nullptr, &now);
      if (now.sa_handler != static_cast<void (*)(int)>(handler)) replaced = true;
    }
  });
  const Program program = one_gap(100);
  for (int i = 0; i < 5 || looks < 1000; ++i) bound(program, byte_a_nanosecond(64), 4096 + 128);
  over = true;
  watcher.join();
  std::signal(SIGINT, before);
  EXPECT_FALSE(replaced);
}

TEST(FluidLeastLoad, IsWhereTheOverheadBegins) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    const Program program = testing::random_program(seed);
    const Machine machine = testing::random_machine(seed);
    const AccessIndex index(program);
    const auto algorithms = least_workspace_algorithms(program);
    const FluidProblem problem{program, index, machine, algorithms};
    const FluidLoad least = fluid_least_load(problem);
    EXPECT_LE(least.bytes, load_profile(program, index, 64, algorithms).peak);
    EXPECT_EQ(fluid_bound(problem, least.bytes + 64).overhead, Nanos{0});
    const FluidBound below = fluid_bound(problem, least.bytes * 9 / 10);
    EXPECT_TRUE(!below.feasible || below.overhead > Nanos{0});
  }
}

}  // namespace
}  // namespace tidepool
