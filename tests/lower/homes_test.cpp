// Tensors whose home is the device, in plans of any strategy and of the streaming schedule.
#include "support/homes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/at.h"
#include "check/check.h"
#include "lower/lower.h"
#include "sim/simulate.h"
#include "support/odd_program.h"
#include "support/program_builder.h"
#include "support/random_program.h"
#include "support/sanitized.h"

namespace tidepool {
namespace {

using enum AccessMode;
using ::testing::AllOf;
using testing::byte_a_nanosecond;
using ::testing::HasSubstr;

/// `w` is used in the middle of an iteration, `v` at its end and beginning.
Program two_weights() {
  testing::ProgramBuilder b;
  const TensorId w = b.tensor("w", 512, true);
  const TensorId v = b.tensor("v", 1024, true);
  const TensorId x = b.tensor("x", 256);
  b.device("first", {{v, read}, {x, write}}, Nanos{1000});
  b.device("second", {{w, read}, {x, update}}, Nanos{1000});
  b.device("third", {{w, update}, {x, read}}, Nanos{1000});
  b.device("fourth", {{v, update}, {x, read}}, Nanos{1000});
  Program program = b.build();
  program.tensors[at(w)].home = Home::device;
  return program;
}

TEST(Homes, AreKeptByTheStreamingSchedule) {
  const Program program = two_weights();
  Lowering lowering(program, byte_a_nanosecond(8));
  const Bytes least = smallest_budget(program, 8).bytes;
  EXPECT_EQ(least, 512 + 1024 + 256);
  const Budget budget{least, 0};
  const auto lowered =
      lowering.lower(lowering.everything_away(least_workspace_algorithms(program)), budget);
  ASSERT_TRUE(lowered) << lowered.error().message;
  const Plan& plan = lowered->plan;
  ASSERT_EQ(plan.boundary.size(), 2U);
  for (const PlacementId id : plan.boundary) {
    const bool home = program.tensors[at(plan.placements[at(id)].tensor)].name == "w";
    EXPECT_EQ(plan.kind_of(id), home ? SpaceKind::device : SpaceKind::host);
  }
  const auto proof = check(program, plan, {least});
  EXPECT_TRUE(proof) << proof.error().message;
  const auto refused = lowering.lower(lowered->strategy, {least - 8, 0});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().smallest_feasible, least);
  EXPECT_THAT(refused.error().message, HasSubstr("are at home (512 B)"));
}

TEST(Homes, AreNotLeftByAStrategy) {
  const Program program = two_weights();
  Lowering lowering(program, byte_a_nanosecond(8));
  for (const Decision decision : {Decision::swap, Decision::drop, Decision::recompute}) {
    Strategy strategy =
        keep_everything(program, lowering.index(), least_workspace_algorithms(program));
    strategy.gaps[1] = decision;  // of `w`, over the iteration's end
    const auto refused = lowering.lower(strategy, {1 << 20, 0});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::bad_input);
    EXPECT_THAT(refused.error().message,
                AllOf(HasSubstr("tensor 'w' after op 'third'"), HasSubstr("home is the device")));
  }
}

/// Nothing but what is at home lies on the device where nobody uses it, and addresses that do not
/// change may leave holes: where they do the budget that is named is enough.
TEST(Homes, AreKeptByAnyStrategyInAnyBudget) {
  int exact = 0, named = 0;
  for (std::uint64_t seed = 0; seed < testing::usual_or(120U, 20U); ++seed) {
    SCOPED_TRACE(seed);
    const Program program = testing::with_homes(
        seed % 2 == 0 ? testing::random_program(seed)
                      : testing::odd_program(seed, testing::HostUse::plain, {9, 15, false}),
        seed);
    ASSERT_TRUE(validate(program)) << validate(program).error().message;
    const Machine machine = testing::random_machine(seed);
    Lowering lowering(program, machine);
    const Bytes least = smallest_budget(program, machine.alignment()).bytes;
    for (const Bytes wanted : {least, least + least / 4, 2 * least}) {
      Bytes budget = std::max<Bytes>(wanted, machine.alignment());
      const Strategy strategy = testing::random_strategy(program, lowering.index(), 0.6,
                                                         seed + static_cast<std::uint64_t>(wanted));
      auto lowered = lowering.lower(strategy, {budget, 0});
      exact += wanted == least && lowered;
      if (!lowered) {
        ++named;
        ASSERT_TRUE(lowered.error().smallest_feasible) << lowered.error().message;
        EXPECT_GT(*lowered.error().smallest_feasible, budget);
        budget = *lowered.error().smallest_feasible;
        lowered = lowering.lower(strategy, {budget, 0});
      }
      ASSERT_TRUE(lowered) << lowered.error().message;
      const auto proof = check(program, lowered->plan, check_limits(machine, {budget, 0}));
      EXPECT_TRUE(proof) << proof.error().message;
      EXPECT_EQ(simulate(program, lowered->plan, machine, 8).iteration_time,
                lowered->iteration_time);
    }
  }
  EXPECT_GT(exact, testing::usual_or(100, 16));
  RecordProperty("exact", exact);
  RecordProperty("named", named);
}

}  // namespace
}  // namespace tidepool
