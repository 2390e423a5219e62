// What `check` proves of each instruction by itself: clauses 0 and 1.
#include "support/check_fixture.h"

namespace tidepool {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using testing::Check;
using ::testing::HasSubstr;

// ---- the program itself

TEST_F(Check, AnInvalidProgramIsRefusedBeforeThePlanIsLookedAt) {
  program_.ops[2].algorithms.clear();
  const auto proof = check(program_, plan_, limits_);
  ASSERT_FALSE(proof);
  EXPECT_EQ(proof.error().code, ErrorCode::bad_input);
}

TEST_F(Check, AnEmptyPlanIsRefused) {
  plan_ = Plan{};
  for (Arena& arena : plan_.arenas) arena.alignment = 64;
  EXPECT_THAT(refusal(), clause(5));
}

// ---- clause 0

TEST_F(Check, AWaitThatPointsForwardIsRefused) {
  const std::int32_t late = op_index("collect");
  op("forward").waits = {{steady()[at(late)].stream, late, 0}};
  EXPECT_THAT(refusal(), AllOf(clause(0), HasSubstr("not issued before it")));
}

TEST_F(Check, AWaitForItselfIsRefused) {
  const std::int32_t i = op_index("forward");
  op("forward").waits = {{op("forward").stream, i, 0}};
  EXPECT_THAT(refusal(), clause(0));
}

TEST_F(Check, AWaitThatNamesTheWrongStreamIsRefused) {
  const std::int32_t copy = copy_index(kWeight, true);
  const std::int32_t in = copy_index(kWeight, false);
  op("update").waits = {{steady()[at(copy)].stream, in, 0}};
  ASSERT_NE(steady()[at(copy)].stream, steady()[at(in)].stream);
  EXPECT_THAT(refusal(), AllOf(clause(0), HasSubstr("not on stream")));
}

TEST_F(Check, TwoWaitsForOneStreamAreRefused) {
  const std::int32_t in = copy_index(kWeight, false);
  const Wait wait{steady()[at(in)].stream, in, 0};
  op("update").waits = {wait, wait};
  EXPECT_THAT(refusal(), clause(0));
}

TEST_F(Check, AWaitForAnInstructionThatDoesNotExistIsRefused) {
  for (const std::int32_t index : {-1, static_cast<std::int32_t>(steady().size())}) {
    op("update").waits = {{1, index, 0}};
    EXPECT_THAT(refusal(), clause(0));
  }
}

TEST_F(Check, AWaitForAnIterationOtherThanThisAndTheLastIsRefused) {
  const std::int32_t in = copy_index(kWeight, false);
  for (const std::int32_t iteration : {-2, 1}) {
    op("update").waits = {{steady()[at(in)].stream, in, iteration}};
    EXPECT_THAT(refusal(), clause(0));
  }
}

TEST_F(Check, EntryAndExitHaveNoIterationBefore) {
  for (Schedule* s : {&plan_.entry, &plan_.exit}) {
    const Schedule before = *s;
    ASSERT_GE(s->instructions.size(), 2u);
    Instruction& second = s->instructions[1];
    ASSERT_FALSE(second.waits.empty());
    second.waits[0].iteration = -1;
    EXPECT_THAT(refusal(), clause(0));
    *s = before;
  }
}

TEST_F(Check, AnInstructionOnAStreamThatDoesNotExistIsRefused) {
  for (const StreamId stream : {StreamId{-1}, static_cast<StreamId>(plan_.streams.size())}) {
    op("head").stream = stream;
    EXPECT_THAT(refusal(), clause(0));
  }
}

TEST_F(Check, AnOpOnACopyStreamIsRefused) {
  op("head").stream = steady()[at(copy_index(kWeight, true))].stream;
  EXPECT_THAT(refusal(), AllOf(clause(0), HasSubstr("of another kind")));
}

TEST_F(Check, ACopyOnTheComputeStreamIsRefused) {
  steady()[at(copy_index(kWeight, true))].stream = op("head").stream;
  EXPECT_THAT(refusal(), clause(0));
}

/// A plan with two compute streams was proved and simulated in half the time.
TEST_F(Check, TwoStreamsForOneDeviceAreRefused) {
  const auto second = static_cast<StreamId>(plan_.streams.size());
  plan_.streams.push_back(plan_.streams[at(op("head").stream)]);
  const auto head = static_cast<std::int32_t>(&op("head") - steady().data());
  op("head").stream = second;
  for (Instruction& x : steady()) {
    for (Wait& w : x.waits) {
      if (w.index == head) w.stream = second;
    }
  }
  EXPECT_THAT(refusal(), AllOf(clause(0), HasSubstr("earlier ops of device 0 on stream")));
}

TEST_F(Check, CopiesOfBothDirectionsOnALinkThatTakesTurnsNeedOneStream) {
  EXPECT_EQ(refusal(), "accepted");
  limits_.links[1].channel = 0;
  EXPECT_THAT(refusal(), AllOf(clause(0), HasSubstr("take turns")));
}

TEST_F(Check, AGuardThatTheOpDoesNotHaveIsRefused) {
  op("head").guard = 0;
  EXPECT_THAT(refusal(), AllOf(clause(5), HasSubstr("is skipped by guard 0, op 'head' by guard")));
}

TEST_F(Check, AGuardOfTheProgramThatThePlanForgotIsRefusedToo) {
  const auto update = std::find_if(program_.ops.begin(), program_.ops.end(),
                                   [](const Op& x) { return x.name == "update"; });
  update->guard = 1;
  EXPECT_THAT(refusal(), AllOf(clause(5), HasSubstr("op 'update' by guard 1")));
  op("update").guard = 1;
  EXPECT_TRUE(check(program_, plan_, limits_));
}

TEST_F(Check, AGuardOnACopyIsRefused) {
  steady()[at(copy_index(kWeight, true))].guard = 0;
  EXPECT_THAT(refusal(), AllOf(clause(0), HasSubstr("only ops may be skipped")));
}

// ---- clause 1

TEST_F(Check, AlignmentBelowTheMachinesIsRefused) {
  limits_.spaces[0].alignment = 64;
  EXPECT_EQ(refusal(), "accepted");
  limits_.spaces[0].alignment = 128;
  EXPECT_THAT(refusal(), AllOf(clause(1), HasSubstr("aligned to 64 B, the machine asks for 128")));
}

TEST_F(Check, AStreamOfADeviceThatIsNotThereIsRefused) {
  plan_.streams[0].device = 7;
  EXPECT_THAT(refusal(), AllOf(clause(1), HasSubstr("stream 0 is of device 7")));
}

TEST_F(Check, APlacementOutsideTheArenaIsRefused) {
  const PlacementId id = op("head").operands[0];
  for (const Bytes offset : {align_up(plan_.device_bytes(), 64), Bytes{-64}, Bytes{1} << 62}) {
    const Bytes before = std::exchange(placement(id).offset, offset);
    EXPECT_THAT(refusal(), AllOf(clause(1), HasSubstr("outside the device arena")));
    placement(id).offset = before;
  }
}

TEST_F(Check, APlacementOutsideTheHostArenaIsRefused) {
  placement(op("feed").operands[0]).offset = align_up(plan_.host_bytes(), 64);
  EXPECT_THAT(refusal(), AllOf(clause(1), HasSubstr("outside the host arena")));
}

TEST_F(Check, APlanLargerThanTheDeviceBudgetIsRefused) {
  limits_.spaces[0].bytes = plan_.device_bytes() - 1;
  EXPECT_THAT(refusal(), AllOf(clause(1), HasSubstr("exceeds the device budget")));
}

TEST_F(Check, APlanLargerThanTheHostBudgetIsRefused) {
  limits_.spaces[1].bytes = plan_.host_bytes() - 1;
  EXPECT_THAT(refusal(), AllOf(clause(1), HasSubstr("exceeds the host budget")));
}

TEST_F(Check, AHostBudgetOfZeroIsNoLimit) {
  limits_.spaces[1] = CheckLimits(0, 0).spaces[1];
  EXPECT_EQ(refusal(), "accepted");
}

TEST_F(Check, AnAlignmentThatIsNoPowerOfTwoIsRefused) {
  for (const Bytes alignment : {Bytes{0}, Bytes{-64}, Bytes{96}}) {
    plan_.arenas[0].alignment = alignment;
    EXPECT_THAT(refusal(), clause(1));
  }
}

TEST_F(Check, AnUnalignedPlacementIsRefused) {
  placement(op("head").operands[0]).offset += 8;
  EXPECT_THAT(refusal(), AllOf(clause(1), AnyOf(HasSubstr("not aligned"), HasSubstr("outside"))));
}

TEST_F(Check, APlacementOfTheWrongSizeIsRefused) {
  placement(op("head").operands[0]).bytes -= 64;
  EXPECT_THAT(refusal(), clause(1));
}

TEST_F(Check, APlacementOfATensorThatDoesNotExistIsRefused) {
  placement(op("head").operands[0]).tensor = 99;
  EXPECT_THAT(refusal(), clause(1));
}

TEST_F(Check, APlacementInASpaceThatDoesNotExistIsRefused) {
  placement(op("head").operands[0]).space = 1;
  EXPECT_THAT(refusal(), clause(1));
}

TEST_F(Check, AnOperandThatNamesNoPlacementIsRefused) {
  op("head").operands[0] = static_cast<PlacementId>(plan_.placements.size());
  EXPECT_THAT(refusal(), clause(1));
  op("head").operands[0] = -1;
  EXPECT_THAT(refusal(), clause(1));
}

TEST_F(Check, ACopyThatNamesNoPlacementIsRefused) {
  steady()[at(copy_index(kWeight, true))].to = kNone;
  EXPECT_THAT(refusal(), clause(1));
}

TEST_F(Check, AnInstructionThatNamesNoOpIsRefused) {
  op("head").op = static_cast<OpId>(program_.ops.size());
  EXPECT_THAT(refusal(), clause(1));
}

TEST_F(Check, AnAlgorithmTheOpDoesNotHaveIsRefused) {
  op("head").algorithm = 1;
  EXPECT_THAT(refusal(), AllOf(clause(1), HasSubstr("'head' has no algorithm 1")));
}

TEST_F(Check, AnAlgorithmThatNeedsMoreWorkspaceIsRefused) {
  program_.ops[2].algorithms.push_back({"hungry", Nanos{1}, 4096, true});
  op("head").algorithm = 1;
  EXPECT_THAT(refusal(), AllOf(clause(1), HasSubstr("workspace")));
}

TEST_F(Check, AWorkspaceOutsideTheArenaIsRefused) {
  op("head").workspace_offset = align_up(plan_.device_bytes(), 64);
  EXPECT_THAT(refusal(), AllOf(clause(1), HasSubstr("workspace of op 'head'")));
}

TEST_F(Check, AWorkspaceThatIsTooSmallIsRefused) {
  op("head").workspace_bytes -= 64;
  EXPECT_THAT(refusal(), AllOf(clause(1), HasSubstr("workspace")));
}

}  // namespace
}  // namespace tidepool
