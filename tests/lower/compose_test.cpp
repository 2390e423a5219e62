// Plans of several devices: proved for any strategy of one device's part and any place of the
// copies of new weights, and what they leave out and put in.
#include "lower/compose.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lower/lower.h"
#include "sim/simulate.h"
#include "support/parallel_program.h"
#include "support/random_program.h"

namespace tidepool {
namespace {

using ::testing::HasSubstr;
using testing::ParallelTraining;

Machine machine_of(std::int32_t devices) {
  return with_devices(testing::byte_a_nanosecond(64), devices);
}

Lowered lowered_part(const Program& part, const Strategy& strategy) {
  Lowering lowering(part, testing::byte_a_nanosecond(64));
  auto lowered = lowering.lower(strategy, {kNoDeviceLimit, 0});
  EXPECT_TRUE(lowered) << lowered.error().message;
  return std::move(*lowered);
}

Lowered kept_part(const Program& part) {
  return lowered_part(part, keep_everything(part, AccessIndex(part),
                                            std::vector<std::int32_t>(part.ops.size(), 0)));
}

std::size_t copies_of(const Plan& plan, const Program& program, std::string_view tensor,
                      SpaceKind to) {
  return static_cast<std::size_t>(
      std::ranges::count_if(plan.steady.instructions, [&](const Instruction& x) {
        return x.kind == InstructionKind::copy && plan.kind_of(x.to) == to &&
               program.tensors[plan.placements[x.to].tensor].name == tensor;
      }));
}

TEST(Compose, IsProvedForAnyStrategyAndAnyPlaceOfNewWeights) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const auto devices = static_cast<std::int32_t>(1 + random.below(3)) + 1;
    const auto p = ParallelTraining(static_cast<int>(1 + random.below(5))).on(devices);
    ASSERT_TRUE(validate(p.part)) << validate(p.part).error().message;
    ASSERT_TRUE(validate(p.whole)) << validate(p.whole).error().message;
    const Lowered part = lowered_part(
        p.part, testing::random_strategy(p.part, AccessIndex(p.part), random.uniform(), seed));
    const Machine machine = machine_of(devices);
    std::vector<std::int32_t> before;
    for (std::size_t t = 0; t < p.part.tensors.size(); ++t) {
      before.push_back(static_cast<std::int32_t>(random.below(part.steps.size() + 1)));
    }
    const auto composed = compose({p.part, part.plan, p.whole, p.replication, machine}, before);
    ASSERT_TRUE(composed) << composed.error().message;
    const Budget budget{part.plan.device_bytes(), composed->plan.host_bytes()};
    const auto proof = check(p.whole, composed->plan, check_limits(machine, budget));
    EXPECT_TRUE(proof) << proof.error().message;
  }
}

TEST(Compose, WeightsAreAtHomeOnEveryDevice) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    SCOPED_TRACE(seed);
    auto p = ParallelTraining(3).on(2);
    for (Program* program : {&p.part, &p.whole}) {
      for (Tensor& t : program->tensors) {
        if (t.persistent) t.home = Home::device;
      }
      ASSERT_TRUE(validate(*program)) << validate(*program).error().message;
    }
    const Strategy strategy = testing::random_strategy(p.part, AccessIndex(p.part), 0.7, seed);
    const Lowered part = lowered_part(p.part, strategy);
    const auto composed = compose({p.part, part.plan, p.whole, p.replication, machine_of(2)}, {});
    ASSERT_TRUE(composed) << composed.error().message;
    const auto proof =
        check(p.whole, composed->plan, check_limits(machine_of(2), {kNoDeviceLimit, 0}));
    EXPECT_TRUE(proof) << proof.error().message;
    Plan gone = composed->plan;
    std::erase_if(gone.boundary, [&](PlacementId id) { return gone.placements[id].space == 1; });
    const auto refused = check(p.whole, gone, check_limits(machine_of(2), {kNoDeviceLimit, 0}));
    EXPECT_FALSE(refused);
  }
}

TEST(Compose, GradientsGoOutOnceADeviceAndNewWeightsInOnceADevice) {
  const auto p = ParallelTraining(3).on(3);
  const Lowered part = kept_part(p.part);
  const auto composed = compose({p.part, part.plan, p.whole, p.replication, machine_of(3)}, {});
  ASSERT_TRUE(composed) << composed.error().message;
  for (const char* gradient : {"g0 0", "g1 1", "g2 2"}) {
    EXPECT_EQ(copies_of(composed->plan, p.whole, gradient, SpaceKind::host), 1U) << gradient;
  }
  for (const char* weight : {"w0 0", "w1 0", "w2 0"}) {
    EXPECT_EQ(copies_of(composed->plan, p.whole, weight, SpaceKind::device), 3U) << weight;
    EXPECT_EQ(copies_of(composed->plan, p.whole, weight, SpaceKind::host), 0U) << weight;
  }
}

TEST(Compose, WeightsThatLeaveTheDeviceAreNotCopiedToTheHostThatHasThem) {
  const auto p = ParallelTraining(3).on(2);
  Lowering lowering(p.part, testing::byte_a_nanosecond(64));
  const Lowered part = lowered_part(
      p.part, lowering.everything_away(std::vector<std::int32_t>(p.part.ops.size(), 0)));
  const auto composed = compose({p.part, part.plan, p.whole, p.replication, machine_of(2)}, {});
  ASSERT_TRUE(composed) << composed.error().message;
  EXPECT_EQ(copies_of(composed->plan, p.whole, "w1 0", SpaceKind::host), 0U);
  EXPECT_EQ(copies_of(composed->plan, p.whole, "w1 0", SpaceKind::device), 4U)
      << "forwards and backwards on two devices";
}

TEST(Compose, ANewWeightOverlapsWithTheBackwardOpsOfOtherLayers) {
  const auto p = ParallelTraining(6).on(2);
  const Lowered part = kept_part(p.part);
  const Machine machine = machine_of(2);
  const auto composed = compose({p.part, part.plan, p.whole, p.replication, machine}, {});
  ASSERT_TRUE(composed) << composed.error().message;
  const Nanos time = long_run(p.whole, composed->plan, machine).iteration_time;
  // A byte a nanosecond on each bus: one after the other, copies and updates would add all this.
  Nanos serial{0};
  for (const Instruction& x : composed->plan.steady.instructions) {
    serial += Nanos{x.kind == InstructionKind::copy ? x.bytes : 0};
    const bool host = x.kind == InstructionKind::op && p.whole.ops[x.op].place == OpPlace::host;
    if (host) serial += p.whole.ops[x.op].algorithms[0].time;
  }
  EXPECT_GE(time, part.compute_time);
  EXPECT_LT(time, part.compute_time + serial * 2 / 3);
}

// In the part's plan the host takes no time for a gradient, and its bytes are soon those of
// another.
TEST(Compose, GradientsOnTheHostHaveBytesOfTheirOwn) {
  const auto p = ParallelTraining(4).on(2);
  Lowered part = kept_part(p.part);
  // One place for all of them, which is right where each waits until the one before was read.
  const Bytes end = part.plan.host_bytes();
  for (Placement& place : part.plan.placements) {
    const bool gradient = p.part.tensors[place.tensor].name.starts_with("g");
    if (place.space != part.plan.host() || !gradient) continue;
    place.offset = end;
    part.plan.host_bytes() = std::max(part.plan.host_bytes(), end + place.bytes);
  }
  const auto composed = compose({p.part, part.plan, p.whole, p.replication, machine_of(2)}, {});
  ASSERT_TRUE(composed) << composed.error().message;
  const Plan& plan = composed->plan;
  const auto proof = check(p.whole, plan, check_limits(machine_of(2), {kNoDeviceLimit, 0}));
  EXPECT_TRUE(proof) << proof.error().message;
  std::vector<Placement> read;
  for (const Instruction& x : plan.steady.instructions) {
    if (x.kind != InstructionKind::op || p.whole.ops[x.op].place != OpPlace::host) continue;
    for (std::size_t k = 0; k < x.operands.size(); ++k) {
      const Placement& place = plan.placements[x.operands[k]];
      if (p.whole.tensors[place.tensor].name.starts_with("g")) read.push_back(place);
    }
  }
  ASSERT_EQ(read.size(), 8U);
  std::ranges::sort(read, {}, &Placement::offset);
  for (std::size_t i = 1; i < read.size(); ++i) {
    EXPECT_LE(read[i - 1].offset + read[i - 1].bytes, read[i].offset);
  }
}

TEST(Compose, RefusesPlansThatUseMoreThanADeviceAndItsHost) {
  const auto p = ParallelTraining(1).on(2);
  Lowered part = kept_part(p.part);
  part.plan.arenas.push_back({SpaceKind::file, 0, 64});
  const auto refused = compose({p.part, part.plan, p.whole, p.replication, machine_of(2)}, {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::bad_input);
}

}  // namespace
}  // namespace tidepool
