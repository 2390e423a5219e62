// The fluid bound where the host may hold only so many bytes: Note [Host memory] in bound/fluid.h.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "bound/fluid.h"
#include "cost/spill.h"
#include "schedule/plan_totals.h"
#include "support/attacks.h"
#include "support/program_builder.h"
#include "support/swap_programs.h"
#include "support/three_tiers.h"

namespace tidepool {
namespace {

constexpr Bytes kBig = 4096, kSmall = 64;

/// 13 ops of 1000 ns. A tensor of kBig between the first and the last; in the middle one has a
/// workspace as large.
Program one_peak() {
  using enum AccessMode;
  testing::ProgramBuilder b;
  const TensorId big = b.tensor("big", kBig);
  TensorId chain = b.tensor("x0", kSmall);
  b.device("first", {{big, write}, {chain, write}}, Nanos{1000});
  b.last().random = true;  // otherwise the host has the values of the iteration before
  for (int i = 1; i <= 11; ++i) {
    const TensorId next = b.tensor(fmt::format("x{}", i), kSmall);
    b.device(fmt::format("op{}", i), {{chain, read}, {next, write}}, Nanos{1000},
             i == 6 ? kBig : 0);
    chain = next;
  }
  b.device("last", {{chain, read}, {big, read}}, Nanos{1000});
  return b.build();
}

Machine with_disk(double bytes_per_second, bool duplex) {
  return with_file_tier(testing::byte_a_nanosecond(64),
                        {{bytes_per_second, Nanos{}}, {bytes_per_second, Nanos{}}, duplex, 0, 64});
}

FluidBound bound(const Program& program, const Machine& machine, Bytes device, Bytes host) {
  const AccessIndex index(program);
  const auto algorithms = least_workspace_algorithms(program);
  return fluid_bound({program, index, machine, algorithms, false, host}, device);
}

/// At the peak kBig, a workspace of kBig and two small tensors are live: what is above both limits
/// is on the disk, which moves a byte in 10 ns, while the ops take 13,000 ns.
TEST(HostMemory, WhatNeitherDeviceNorHostHoldsWaitsForTheDisk) {
  constexpr Bytes kDevice = kBig + 512, kHost = 1024;
  constexpr Bytes kOnDisk = 2 * kBig + 2 * kSmall - kDevice - kHost;
  const Program program = one_peak();
  const FluidBound in_turn = bound(program, with_disk(1e8, false), kDevice, kHost);
  ASSERT_TRUE(in_turn.feasible);
  EXPECT_NEAR(static_cast<double>(in_turn.overhead.count()), 2 * 10 * kOnDisk - 13'000, 5);
  const FluidBound at_once = bound(program, with_disk(1e8, true), kDevice, kHost);
  EXPECT_NEAR(static_cast<double>(at_once.overhead.count()), 10 * kOnDisk - 13'000, 5);
}

TEST(HostMemory, EnoughOfItCostsNothing) {
  const Program program = one_peak();
  EXPECT_EQ(bound(program, with_disk(1e8, false), kBig + 512, kBig).overhead, Nanos{0});
  EXPECT_EQ(bound(program, with_disk(1e8, false), kBig + 512, 0).overhead, Nanos{0});
  EXPECT_EQ(bound(program, with_disk(1e12, false), kBig + 512, 64).overhead, Nanos{0});
  EXPECT_TRUE(bound(program, testing::byte_a_nanosecond(64), kBig + 512, kBig).feasible);
}

TEST(HostMemory, TooLittleOfItWithoutAFileHasNoSchedule) {
  EXPECT_FALSE(bound(one_peak(), testing::byte_a_nanosecond(64), kBig + 512, 1024).feasible);
}

/// A file that the device has a link to is not behind the host.
TEST(HostMemory, SaysNothingWhereTheDeviceHasAFileOfItsOwn) {
  const Machine machine =
      with_spill(testing::byte_a_nanosecond(64), {{1e9, {}}, {1e9, {}}, true, {1e9, {}}, 0, 64});
  const Program program = one_peak();
  EXPECT_EQ(bound(program, machine, kBig + 512, 64).overhead,
            bound(program, machine, kBig + 512, 0).overhead);
}

/// Random plans over three spaces never beat it, and it often asks for more than the links of the
/// device do.
TEST(HostMemory, NoPlanOverThreeTiersIsFaster) {
  std::uint64_t plans = 0, more = 0;
  const std::uint64_t seeds = testing::attacks(300);
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    SCOPED_TRACE(seed);
    const auto drawn = testing::random_three_tiers(seed);
    if (!drawn) continue;
    const auto& [program, plan, machine, limits] = drawn->whole;
    const AccessIndex index(program);
    const auto algorithms = chosen_algorithms(program, plan);
    const Bytes device = limits.spaces[0].bytes, host = limits.spaces[1].bytes;
    FluidProblem problem{program, index, machine, algorithms, true, host};
    const FluidBound tiers = fluid_bound(problem, device);
    ASSERT_TRUE(tiers.feasible);
    const Nanos overhead = drawn->iteration_time - compute_time(program, algorithms);
    EXPECT_LE(tiers.overhead, overhead);
    ++plans;
    problem.host_limit = 0;
    const Nanos without = fluid_bound(problem, device).overhead;
    EXPECT_GE(tiers.overhead, without);
    more += tiers.overhead > without ? 1 : 0;
  }
  if (testing::enough_for_shares(seeds)) {
    EXPECT_GT(plans, seeds / 3);
    EXPECT_GT(more, plans / 10);
  }
}

}  // namespace
}  // namespace tidepool
