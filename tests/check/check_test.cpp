// A correct plan of a small program, broken by hand in every way the clauses of `check` name.
#include "check/check.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "lower/lower.h"
#include "support/program_builder.h"
#include "support/random_program.h"

namespace tidepool {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using testing::byte_a_nanosecond;
using ::testing::HasSubstr;
using testing::tiny_training;

std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

class Check : public ::testing::Test {
 protected:
  // Tensors: input, weight, hidden, output, gradient. Ops: feed, forward, head, backward, update,
  // collect. The weight is swapped between forward and update.
  Program program_ = tiny_training();
  Plan plan_;
  CheckLimits limits_;

  void SetUp() override {
    Lowering lowering(program_, byte_a_nanosecond(64));
    Strategy strategy =
        keep_everything(program_, lowering.index(), least_workspace_algorithms(program_));
    strategy.gaps[at(lowering.index().first_gap(kWeight))] = Decision::swap;
    const Budget budget{1 << 20, 0};
    auto lowered = lowering.lower(strategy, budget);
    ASSERT_TRUE(lowered) << lowered.error().message;
    plan_ = lowered->plan;
    limits_ = {plan_.device_bytes(), plan_.host_bytes()};
    ASSERT_EQ(refusal(), "accepted");
  }

  static constexpr TensorId kWeight = 1;
  static constexpr TensorId kGradient = 4;

  std::string refusal() const {
    const auto proof = check(program_, plan_, limits_);
    if (proof) return "accepted";
    EXPECT_EQ(proof.error().code, ErrorCode::check_failed) << proof.error().message;
    return proof.error().message;
  }

  /// Matches a refusal by one of the clauses.
  static ::testing::Matcher<std::string> clause(int number) {
    return HasSubstr(fmt::format("the plan is wrong: ({})", number));
  }

  std::vector<Instruction>& steady() { return plan_.steady.instructions; }
  Instruction& op(const std::string& name) { return steady()[at(op_index(name))]; }
  std::int32_t op_index(const std::string& name) {
    for (std::size_t i = 0; i < steady().size(); ++i) {
      const Instruction& x = steady()[i];
      if (x.kind == InstructionKind::op && program_.ops[at(x.op)].name == name) {
        return static_cast<std::int32_t>(i);
      }
    }
    ADD_FAILURE() << "no op " << name;
    return 0;
  }
  Placement& placement(PlacementId id) { return plan_.placements[at(id)]; }
  /// The steady copy of a tensor in the given direction.
  std::int32_t copy_index(TensorId tensor, bool to_host) {
    for (std::size_t i = 0; i < steady().size(); ++i) {
      const Instruction& x = steady()[i];
      if (x.kind == InstructionKind::copy && placement(x.from).tensor == tensor &&
          (placement(x.to).space == plan_.host()) == to_host) {
        return static_cast<std::int32_t>(i);
      }
    }
    ADD_FAILURE() << "no copy of tensor " << tensor;
    return 0;
  }

  /// Inserts before `position`; waits keep naming the instructions they named.
  static void insert(Schedule& s, std::int32_t position, Instruction x) {
    for (Instruction& other : s.instructions) {
      for (Wait& w : other.waits) {
        if (w.index >= position) ++w.index;
      }
    }
    s.instructions.insert(s.instructions.begin() + position, std::move(x));
  }
  static void erase(Schedule& s, std::int32_t position) {
    s.instructions.erase(s.instructions.begin() + position);
    for (Instruction& other : s.instructions) {
      std::erase_if(other.waits, [&](const Wait& w) { return w.index == position; });
      for (Wait& w : other.waits) {
        if (w.index > position) --w.index;
      }
    }
  }
  static std::int32_t find_kind(const Schedule& s, InstructionKind kind) {
    const auto it = std::find_if(s.instructions.begin(), s.instructions.end(),
                                 [&](const Instruction& x) { return x.kind == kind; });
    EXPECT_NE(it, s.instructions.end());
    return static_cast<std::int32_t>(it - s.instructions.begin());
  }
};

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
  for (const StreamId stream : {-1, static_cast<StreamId>(plan_.streams.size())}) {
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

// ---- clause 2

TEST_F(Check, ARemovedWaitIsARace) {
  // The upload of the input without its wait for the host op that wrote it.
  steady()[at(copy_index(0, false))].waits.clear();
  EXPECT_THAT(refusal(), AllOf(clause(2), HasSubstr("'input'"), HasSubstr("nothing orders them")));
}

TEST(CheckRandomPlans, ARemovedWaitForTheIterationBeforeIsARaceWithTheNextIteration) {
  int races = 0;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const Program program = testing::random_program(seed);
    Lowering lowering(program, testing::random_machine(seed));
    const Bytes budget = 2 * smallest_budget(program, 64).bytes;
    auto lowered =
        lowering.lower(testing::random_strategy(program, lowering.index(), 0.7, seed), {budget, 0});
    ASSERT_TRUE(lowered);
    Plan& plan = lowered->plan;
    for (Instruction& x : plan.steady.instructions) {
      const auto before = x.waits;
      if (std::erase_if(x.waits, [](const Wait& w) { return w.iteration == -1; }) == 0) continue;
      const auto proof = check(program, plan, {budget, 0});
      x.waits = before;
      if (proof) continue;
      EXPECT_THAT(proof.error().message,
                  AllOf(HasSubstr("(2)"), HasSubstr("of the next iteration")));
      ++races;
    }
  }
  EXPECT_GT(races, 3);
}

TEST_F(Check, ARaceInEntryOrExitIsFound) {
  for (Schedule* s : {&plan_.entry, &plan_.exit}) {
    const Schedule before = *s;
    for (Instruction& x : s->instructions) x.waits.clear();
    EXPECT_THAT(refusal(), clause(2));
    *s = before;
  }
}

TEST_F(Check, AWorkspaceOverItsOwnOpsTensorsIsRefused) {
  op("head").workspace_offset = placement(op("head").operands[0]).offset;
  EXPECT_THAT(refusal(), AnyOf(clause(1), clause(2)));
}

TEST_F(Check, TwoTensorsOfOneOpAtOneAddressAreRefused) {
  placement(op("backward").operands[2]).offset = placement(op("backward").operands[1]).offset;
  EXPECT_THAT(refusal(), AllOf(clause(2), HasSubstr("twice and writes it")));
}

TEST_F(Check, ACopyOntoItselfIsRefused) {
  Instruction& copy = steady()[at(copy_index(kWeight, true))];
  copy.to = copy.from;
  EXPECT_THAT(refusal(), clause(2));
}

// ---- clauses 2 and 3: addresses

TEST_F(Check, AnAddressTakenFromALivingTensorIsARaceOrAWrongValue) {
  // Everything alive while head runs must not lie where hidden does.
  const Bytes hidden = placement(op("head").operands[0]).offset;
  placement(op("head").operands[1]).offset = hidden;
  EXPECT_THAT(refusal(), AnyOf(clause(1), clause(2), clause(3)));
}

TEST_F(Check, MovingAnyPlacementOntoAnotherIsProvedOrRefusedButNeverCrashes) {
  int refused = 0;
  for (std::size_t i = 0; i < plan_.placements.size(); ++i) {
    for (std::size_t j = 0; j < plan_.placements.size(); ++j) {
      if (i == j || plan_.placements[i].space != plan_.placements[j].space) continue;
      const Bytes before = std::exchange(plan_.placements[i].offset, plan_.placements[j].offset);
      if (refusal() != "accepted") ++refused;
      plan_.placements[i].offset = before;
    }
  }
  EXPECT_GT(refused, 5);
}

// ---- clause 3

TEST_F(Check, AnOperandThatIsAnotherTensorIsRefused) {
  op("update").operands[0] = op("backward").operands[0];  // output instead of gradient
  EXPECT_THAT(refusal(), AllOf(clause(3), HasSubstr("'update'"), HasSubstr("'gradient'")));
}

TEST_F(Check, AnOperandInTheWrongMemoryIsRefused) {
  const Instruction& out = steady()[at(copy_index(kWeight, true))];
  op("update").operands[1] = out.to;
  EXPECT_THAT(refusal(), AllOf(clause(3), HasSubstr("wrong memory")));
}

TEST_F(Check, AnInstructionWithTooFewOperandsIsRefused) {
  op("update").operands.pop_back();
  EXPECT_THAT(refusal(), clause(3));
}

TEST_F(Check, AShortenedCopyIsRefused) {
  steady()[at(copy_index(kWeight, false))].bytes -= 64;
  EXPECT_THAT(refusal(), AllOf(clause(3), HasSubstr("448 of the 512 B")));
}

TEST_F(Check, ACopyOfTheWrongTensorIsRefused) {
  steady()[at(copy_index(kWeight, true))].from = op("backward").operands[2];
  EXPECT_THAT(refusal(), AllOf(clause(3), HasSubstr("'gradient'"), HasSubstr("'weight'")));
}

TEST_F(Check, ACopyFromAPlaceWithoutAValueIsRefused) {
  // Another host placement of the weight that nobody ever writes in the steady state.
  Placement empty = placement(steady()[at(copy_index(kWeight, true))].to);
  empty.offset = align_up(plan_.host_bytes(), 64);
  plan_.host_bytes() = empty.offset + empty.bytes;
  limits_.spaces[1].bytes = plan_.host_bytes();
  plan_.placements.push_back(empty);
  steady()[at(copy_index(kWeight, false))].from =
      static_cast<PlacementId>(plan_.placements.size()) - 1;
  EXPECT_THAT(refusal(), AllOf(clause(3), HasSubstr("no whole value")));
}

TEST_F(Check, AMissingCopyLeavesAStaleOrNoValue) {
  erase(plan_.steady, copy_index(0, false));
  EXPECT_THAT(refusal(), AnyOf(clause(2), clause(3)));
}

TEST_F(Check, AnOpThatRunsWithTwoAlgorithmsIsRefused) {
  program_.ops[2].algorithms.push_back({"other", Nanos{1}, 0, true});
  Instruction again = op("head");
  again.algorithm = 1;
  again.waits.clear();
  insert(plan_.steady, op_index("head") + 1, again);
  EXPECT_THAT(refusal(), AllOf(clause(3), HasSubstr("two algorithms")));
}

TEST_F(Check, RunningARecomputableOpAgainOnTheSameInputsIsProved) {
  Instruction again = op("head");
  again.waits.clear();
  insert(plan_.steady, op_index("head") + 1, again);
  EXPECT_EQ(refusal(), "accepted");
}

TEST_F(Check, RunningAnOpAgainAfterItsInputChangedIsRefused) {
  Instruction again = op("forward");
  again.operands[1] = op("update").operands[1];
  again.waits.clear();
  insert(plan_.steady, op_index("update") + 1, again);
  EXPECT_THAT(refusal(), AnyOf(clause(2), clause(3)));
}

// ---- clause 4

TEST_F(Check, ABoundaryAtTheWrongPlaceIsRefused) {
  plan_.boundary[0] = steady()[at(copy_index(kWeight, true))].to;
  EXPECT_THAT(refusal(), AllOf(AnyOf(clause(3), clause(4)), HasSubstr("'weight'")));
}

TEST_F(Check, ABoundaryWithoutAPersistentTensorIsRefused) {
  plan_.boundary.clear();
  EXPECT_THAT(refusal(), AllOf(clause(4), HasSubstr("'weight' lies 0 times")));
}

TEST_F(Check, ABoundaryThatNamesATensorTwiceIsRefused) {
  plan_.boundary.push_back(plan_.boundary[0]);
  EXPECT_THAT(refusal(), clause(4));
}

TEST_F(Check, ABoundaryThatNamesATensorThatIsNotPersistentIsRefused) {
  plan_.boundary.push_back(op("head").operands[0]);
  EXPECT_THAT(refusal(), clause(4));
}

TEST_F(Check, ABoundaryThatNamesNoPlacementIsRefused) {
  plan_.boundary[0] = 1000;
  EXPECT_THAT(refusal(), clause(4));
}

TEST_F(Check, AMissingStoreIsRefused) {
  erase(plan_.exit, find_kind(plan_.exit, InstructionKind::store));
  EXPECT_THAT(refusal(), AllOf(clause(4), HasSubstr("exit stores tensor 'weight' 0 times")));
}

TEST_F(Check, ADoubledStoreIsRefused) {
  const std::int32_t store = find_kind(plan_.exit, InstructionKind::store);
  Instruction again = plan_.exit.instructions[at(store)];
  insert(plan_.exit, store + 1, again);
  EXPECT_THAT(refusal(), AllOf(clause(4), HasSubstr("2 times")));
}

TEST_F(Check, AMissingLoadIsRefused) {
  erase(plan_.entry, find_kind(plan_.entry, InstructionKind::load));
  EXPECT_THAT(refusal(), AnyOf(clause(3), clause(4)));
}

TEST_F(Check, AnEntryThatDoesNotCopyTheValueInIsRefused) {
  erase(plan_.entry, find_kind(plan_.entry, InstructionKind::copy));
  EXPECT_THAT(refusal(), AllOf(clause(4), HasSubstr("after entry")));
}

TEST_F(Check, AStoreInTheEntryAndALoadInTheExitAreRefused) {
  const Plan before = plan_;
  Instruction store = plan_.exit.instructions[at(find_kind(plan_.exit, InstructionKind::store))];
  store.waits.clear();
  insert(plan_.entry, static_cast<std::int32_t>(plan_.entry.instructions.size()), store);
  EXPECT_THAT(refusal(), AnyOf(clause(2), clause(4)));
  plan_ = before;
  Instruction load = plan_.entry.instructions[at(find_kind(plan_.entry, InstructionKind::load))];
  load.waits.clear();
  insert(plan_.exit, 0, load);
  EXPECT_THAT(refusal(), AnyOf(clause(2), clause(4)));
}

// ---- clause 5

TEST_F(Check, AMissingOpIsRefused) {
  int counted = 0;
  for (const Op& missing : program_.ops) {
    const Plan before = plan_;
    erase(plan_.steady, op_index(missing.name));
    const std::string message = refusal();
    EXPECT_NE(message, "accepted") << missing.name;
    if (message.find(fmt::format("(5) op '{}' never runs", missing.name)) != std::string::npos)
      ++counted;
    plan_ = before;
  }
  EXPECT_GT(counted, 0) << "clause 5 is hidden by races everywhere";
}

TEST_F(Check, ADoubledUpdateIsRefused) {
  Instruction again = op("update");
  again.waits.clear();
  insert(plan_.steady, op_index("update") + 1, again);
  EXPECT_THAT(refusal(), AllOf(clause(5), HasSubstr("'update' runs 2 times")));
}

TEST_F(Check, ADoubledHostOpIsRefused) {
  Instruction again = op("collect");
  again.waits.clear();
  insert(plan_.steady, op_index("collect") + 1, again);
  EXPECT_THAT(refusal(), AllOf(clause(5), HasSubstr("'collect' runs 2 times")));
}

TEST_F(Check, AHostOpMarkedRecomputableMayStillRunOnlyOnce) {
  program_.ops.back().recomputable = true;
  Instruction again = op("collect");
  again.waits.clear();
  insert(plan_.steady, op_index("collect") + 1, again);
  EXPECT_THAT(refusal(), clause(5));
}

TEST_F(Check, AnEntryOrExitThatRunsAnOpIsRefused) {
  for (Schedule* s : {&plan_.entry, &plan_.exit}) {
    const Schedule before = *s;
    Instruction x = op("feed");
    x.waits.clear();
    insert(*s, static_cast<std::int32_t>(s->instructions.size()), x);
    EXPECT_THAT(refusal(), AnyOf(clause(2), clause(5)));
    *s = before;
  }
}

TEST_F(Check, ALoadInTheSteadyStateIsRefused) {
  Instruction load = plan_.entry.instructions[at(find_kind(plan_.entry, InstructionKind::load))];
  load.waits.clear();
  insert(plan_.steady, static_cast<std::int32_t>(steady().size()), load);
  EXPECT_THAT(refusal(), AnyOf(clause(2), clause(5)));
}

// ---- the message

TEST_F(Check, ACounterexampleNamesBothInstructionsAndTheByte) {
  steady()[at(copy_index(0, false))].waits.clear();
  EXPECT_THAT(refusal(), AllOf(HasSubstr("steady[0] (op 'feed'"),
                               HasSubstr("copy of tensor 'input'"), HasSubstr("host byte")));
}

// ---- clause 5: the order of host ops

/// Two inputs are fed and two results collected; nothing but the program's order says which first.
class CheckHostOrder : public Check {
 protected:
  void SetUp() override {
    using enum AccessMode;
    testing::ProgramBuilder b;
    const TensorId x = b.tensor("x", 64);
    const TensorId y = b.tensor("y", 64);
    const TensorId u = b.tensor("u", 64);
    const TensorId v = b.tensor("v", 64);
    b.host("feed x", {{x, write}});
    b.host("feed y", {{y, write}});
    b.device("work", {{x, read}, {y, read}, {u, write}, {v, write}}, Nanos{1000});
    b.host("collect u", {{u, read}});
    b.host("collect v", {{v, read}});
    program_ = b.build();
    Lowering lowering(program_, byte_a_nanosecond(64));
    auto lowered = lowering.lower(
        keep_everything(program_, lowering.index(), least_workspace_algorithms(program_)),
        {1 << 20, 0});
    ASSERT_TRUE(lowered) << lowered.error().message;
    plan_ = lowered->plan;
    limits_ = {plan_.device_bytes(), plan_.host_bytes()};
    ASSERT_EQ(refusal(), "accepted");
  }

  /// The op becomes the first of a second host stream: ordered with what it waits for only.
  void on_a_stream_of_its_own(const std::string& name) {
    op(name).stream = static_cast<StreamId>(plan_.streams.size());
    plan_.streams.push_back({0, StreamKind::host});
    const std::int32_t moved = op_index(name);
    for (Instruction& x : steady()) {
      for (Wait& w : x.waits) {
        if (w.index == moved) w.stream = op(name).stream;
      }
    }
  }
};

// The runner of a training sums losses in the order of host ops: the plan was proved, and the sum
// was another one.
TEST_F(CheckHostOrder, HostOpsInAnotherOrderAreRefusedThoughNoTensorTells) {
  const std::int32_t first = op_index("collect u");
  const std::int32_t second = op_index("collect v");
  std::swap(op("collect u").op, op("collect v").op);
  std::swap(steady()[at(first)].operands, steady()[at(second)].operands);
  // Both wait for both copies, so that the values are right.
  steady()[at(first)].waits = steady()[at(second)].waits;
  for (std::int32_t i = second; i > first; --i) {
    if (steady()[at(i)].kind != InstructionKind::copy) continue;
    const Instruction copy = steady()[at(i)];
    erase(plan_.steady, i);
    insert(plan_.steady, first, copy);
    break;
  }
  EXPECT_THAT(refusal(), AllOf(clause(5), HasSubstr("where host op 'collect u' is next")));
}

TEST_F(CheckHostOrder, AHostOpOnAStreamOfItsOwnHasToWaitForTheOneBeforeIt) {
  on_a_stream_of_its_own("feed y");
  EXPECT_THAT(refusal(), AllOf(clause(5), HasSubstr("does not wait for"), HasSubstr("feed x")));
}

TEST_F(CheckHostOrder, TheFirstHostOpWaitsForTheLastOneOfTheIterationBefore) {
  on_a_stream_of_its_own("feed x");
  const StreamId host = op("feed y").stream;
  op("feed y").waits.push_back({op("feed x").stream, op_index("feed x"), 0});
  EXPECT_THAT(refusal(), AllOf(clause(5), HasSubstr("does not wait for"), HasSubstr("collect v")));
  op("feed x").waits = {{host, op_index("collect v"), -1}};
  EXPECT_EQ(refusal(), "accepted");
}

}  // namespace
}  // namespace tidepool
