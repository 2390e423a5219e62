// The fluid bound where the host may hold only so many bytes: Note [Host memory] in bound/fluid.h.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "bound/fluid.h"
#include "cost/spill.h"
#include "lower/time_plan.h"
#include "schedule/plan_totals.h"
#include "support/attacks.h"
#include "support/program_builder.h"
#include "support/swap_programs.h"
#include "support/three_tiers.h"

namespace tidepool {
namespace {

constexpr Bytes kLarge = 4096, kLittle = 64;

/// 13 ops of 1000 ns. A tensor of kLarge between the first and the last; in the middle one has a
/// workspace as large.
Program one_peak() {
  using enum AccessMode;
  testing::ProgramBuilder b;
  const TensorId big = b.tensor("big", kLarge);
  TensorId chain = b.tensor("x0", kLittle);
  b.device("first", {{big, write}, {chain, write}}, Nanos{1000});
  b.last().random = true;  // otherwise the host has the values of the iteration before
  for (int i = 1; i <= 11; ++i) {
    const TensorId next = b.tensor(fmt::format("x{}", i), kLittle);
    b.device(fmt::format("op{}", i), {{chain, read}, {next, write}}, Nanos{1000},
             i == 6 ? kLarge : 0);
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

/// At the peak kLarge, a workspace of kLarge and two small tensors are live: what is above both
/// limits is on the disk, which moves a byte in 10 ns, while the ops take 13,000 ns.
TEST(HostMemory, WhatNeitherDeviceNorHostHoldsWaitsForTheDisk) {
  constexpr Bytes kDevice = kLarge + 512, kHost = 1024;
  constexpr Bytes kOnDisk = 2 * kLarge + 2 * kLittle - kDevice - kHost;
  const Program program = one_peak();
  const FluidBound in_turn = bound(program, with_disk(1e8, false), kDevice, kHost);
  ASSERT_TRUE(in_turn.feasible);
  EXPECT_NEAR(static_cast<double>(in_turn.overhead.count()), 2 * 10 * kOnDisk - 13'000, 5);
  const FluidBound at_once = bound(program, with_disk(1e8, true), kDevice, kHost);
  EXPECT_NEAR(static_cast<double>(at_once.overhead.count()), 10 * kOnDisk - 13'000, 5);
}

TEST(HostMemory, EnoughOfItCostsNothing) {
  const Program program = one_peak();
  EXPECT_EQ(bound(program, with_disk(1e8, false), kLarge + 512, kLarge).overhead, Nanos{0});
  EXPECT_EQ(bound(program, with_disk(1e8, false), kLarge + 512, 0).overhead, Nanos{0});
  EXPECT_EQ(bound(program, with_disk(1e12, false), kLarge + 512, 64).overhead, Nanos{0});
  EXPECT_TRUE(bound(program, testing::byte_a_nanosecond(64), kLarge + 512, kLarge).feasible);
}

TEST(HostMemory, TooLittleOfItWithoutAFileHasNoSchedule) {
  EXPECT_FALSE(bound(one_peak(), testing::byte_a_nanosecond(64), kLarge + 512, 1024).feasible);
}

/// A file that the device has a link to is not behind the host.
TEST(HostMemory, SaysNothingWhereTheDeviceHasAFileOfItsOwn) {
  const Machine machine =
      with_spill(testing::byte_a_nanosecond(64), {{1e9, {}}, {1e9, {}}, true, {1e9, {}}, 0, 64});
  const Program program = one_peak();
  EXPECT_EQ(bound(program, machine, kLarge + 512, 64).overhead,
            bound(program, machine, kLarge + 512, 0).overhead);
}

/// The links of the file take so many times as long.
Machine with_slower_file(Machine machine, double factor) {
  const SpaceId file = machine.behind_host();
  for (Link& link : machine.links) {
    if (link.from == file || link.to == file) link.speed.bytes_per_second /= factor;
  }
  return machine;
}

/// More layers or more rounds: linear programs of both take ten times as long.
testing::RandomShape shape_of(std::uint64_t seed) {
  testing::RandomShape shape;
  shape.most_layers = seed % 2 == 0 ? 3 : 2;
  shape.most_rounds = seed % 2 == 0 ? 1 : 2;
  return shape;
}

/// Random plans over three spaces never beat it, and with a slow file it often asks for more than
/// the links of the device do.
TEST(HostMemory, NoPlanOverThreeTiersIsFaster) {
  std::uint64_t slow = 0, more = 0;
  const std::uint64_t seeds = testing::attacks(100);
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    SCOPED_TRACE(seed);
    const auto drawn = testing::random_three_tiers(seed, shape_of(seed));
    if (!drawn) continue;
    const auto& [drawn_program, plan, machine, limits] = drawn->whole;
    const Program& program = drawn_program;
    const AccessIndex index(program);
    const auto algorithms = chosen_algorithms(program, plan);
    // What the plan takes: the tightest limits that it keeps.
    const Bytes device = plan.arenas[0].bytes, host = std::max<Bytes>(plan.arenas[1].bytes, 1);
    const auto bound_on = [&](const Machine& on, Bytes host_limit) {
      const FluidBound b = fluid_bound({program, index, on, algorithms, true, host_limit}, device);
      EXPECT_TRUE(b.feasible);
      return b.overhead;
    };
    const Nanos without = bound_on(machine, 0);
    for (const double factor : {1.0, 30.0}) {
      const Machine on = with_slower_file(machine, factor);
      const Nanos overhead =
          time_plan(program, plan, on).iteration_time - compute_time(program, algorithms);
      const Nanos tiers = bound_on(on, host);
      EXPECT_LE(tiers, overhead) << factor;
      EXPECT_GE(tiers * 1.001 + Nanos{1}, without) << "but for what the solver leaves";
      if (factor == 1 || plan.arenas[2].bytes == 0) continue;
      ++slow;
      more += tiers > without * 1.01 ? 1 : 0;
    }
  }
  if (testing::enough_for_shares(seeds)) {
    EXPECT_GT(slow, seeds / 3);
    EXPECT_GT(more, slow / 10);
  }
  RecordProperty("with_a_slow_file", static_cast<int>(slow));
  RecordProperty("where_it_asks_for_more", static_cast<int>(more));
}

/// The same without a file: what a plan takes of the host is enough by the bound, too.
TEST(HostMemory, NoPlanOverTwoTiersIsFaster) {
  std::uint64_t away = 0;
  const std::uint64_t seeds = testing::attacks(100);
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    SCOPED_TRACE(seed);
    const auto drawn = testing::random_plan(seed, shape_of(seed));
    if (!drawn || drawn->lowered.plan.host_bytes() == 0) continue;
    const Plan& plan = drawn->lowered.plan;
    const AccessIndex index(drawn->program);
    const auto algorithms = chosen_algorithms(drawn->program, plan);
    const FluidBound b =
        fluid_bound({drawn->program, index, drawn->machine, algorithms, true, plan.host_bytes()},
                    plan.device_bytes());
    EXPECT_TRUE(b.feasible);
    EXPECT_LE(b.overhead, drawn->lowered.iteration_time - compute_time(drawn->program, algorithms));
    ++away;
  }
  if (testing::enough_for_shares(seeds)) {
    EXPECT_GT(away, seeds / 3);
  }
}

}  // namespace
}  // namespace tidepool
