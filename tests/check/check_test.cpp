// What `check` proves of plans as a whole: races, values, boundaries, counts (clauses 2 to 6).
#include "support/check_fixture.h"

namespace tidepool {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using testing::byte_a_nanosecond;
using testing::Check;
using ::testing::HasSubstr;

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
  EXPECT_THAT(refusal(), clause(0));
}

/// No link leads from a space to itself, and simulation would count nothing for it.
TEST_F(Check, ACopyInsideOneSpaceIsRefused) {
  Instruction& copy = steady()[at(copy_index(kWeight, true))];
  plan_.placements.push_back(placement(copy.from));
  copy.to = static_cast<PlacementId>(plan_.placements.size()) - 1;
  EXPECT_THAT(refusal(), AllOf(clause(0), HasSubstr("inside space")));
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

TEST_F(Check, ABoundaryMayNameATensorInSeveralSpacesThatAllHoldItsValue) {
  // The host holds what entry loads there, and not what the iteration makes of it.
  const TensorId weight = plan_.placements[static_cast<std::size_t>(plan_.boundary[0])].tensor;
  const auto other = std::ranges::find_if(plan_.placements, [&](const Placement& p) {
    return p.tensor == weight && p.space != plan_.placements[plan_.boundary[0]].space;
  });
  ASSERT_NE(other, plan_.placements.end());
  plan_.boundary.push_back(static_cast<PlacementId>(other - plan_.placements.begin()));
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

// ---- clause 6

TEST_F(Check, APinnedTensorThatIsCopiedIsRefused) {
  program_.tensors[at(kWeight)].pinned = true;
  EXPECT_THAT(refusal(), AllOf(clause(6), HasSubstr("moves tensor")));
}

TEST_F(Check, APinnedTensorAtTwoPlacesIsRefused) {
  program_.tensors[at(kGradient)].pinned = true;
  EXPECT_EQ(refusal(), "accepted");
  // Written at one place and read at another, which holds the same by chance.
  const PlacementId old = op("update").operands[0];
  Placement moved = placement(old);
  moved.offset = align_up(plan_.device_bytes(), 64);
  plan_.device_bytes() = limits_.spaces[0].bytes = moved.offset + moved.bytes;
  plan_.placements.push_back(moved);
  op("update").operands[0] = static_cast<PlacementId>(plan_.placements.size()) - 1;
  EXPECT_NE(refusal(), "accepted");
}

// ---- clause 7

TEST_F(Check, AHomeIsKeptByAPlanThatDecidesNothingOverTheIterationsEnd) {
  program_.tensors[at(kWeight)].home = Home::device;
  EXPECT_EQ(refusal(), "accepted");
}

TEST_F(Check, ATensorAwayFromItsHomeBetweenIterationsIsRefused) {
  Lowering lowering(program_, byte_a_nanosecond(64));
  const auto away =
      lowering.lower(lowering.everything_away(least_workspace_algorithms(program_)), {1 << 20, 0});
  ASSERT_TRUE(away) << away.error().message;
  plan_ = away->plan;
  limits_ = {plan_.device_bytes(), plan_.host_bytes()};
  EXPECT_EQ(refusal(), "accepted");
  program_.tensors[at(kWeight)].home = Home::device;
  EXPECT_THAT(refusal(), AllOf(clause(7), HasSubstr("'weight'"),
                               HasSubstr("is not on device 0 between iterations")));
}

/// Out behind `update` and in again to the same bytes, all before the iteration ends.
TEST_F(Check, ATensorThatLeavesItsHomeAndIsBackInTimeIsRefused) {
  Instruction out = steady()[at(copy_index(kWeight, true))];
  Instruction in = steady()[at(copy_index(kWeight, false))];
  const auto update = op_index("update");
  const PlacementId home = op("update").operands[1];
  Placement copy = placement(out.to);
  copy.offset = align_up(plan_.host_bytes(), 64);
  plan_.host_bytes() = limits_.spaces[1].bytes = copy.offset + copy.bytes;
  plan_.placements.push_back(copy);
  out.from = in.to = home;
  out.to = in.from = static_cast<PlacementId>(plan_.placements.size()) - 1;
  out.waits = {{op("update").stream, update, 0}};
  insert(plan_.steady, update + 1, out);
  in.waits = {{out.stream, update + 1, 0}};
  insert(plan_.steady, update + 2, in);
  EXPECT_EQ(refusal(), "accepted");
  program_.tensors[at(kWeight)].home = Home::device;
  EXPECT_THAT(refusal(),
              AllOf(clause(7), HasSubstr("writes over tensor 'weight'"), HasSubstr("op 'update'")));
}

// ---- clause 6 again: bytes that stay taken

/// Hidden is read by `backward` for the last time and stays taken until `update` has run.
TEST_F(Check, BytesThatStayTakenAndAreOverwrittenAreRefused) {
  const auto update = static_cast<OpId>(std::ranges::find(program_.ops, "update", &Op::name) -
                                        program_.ops.begin());
  const TensorId hidden = program_.ops[1].accesses[2].tensor;
  ASSERT_EQ(program_.tensors[at(hidden)].name, "hidden");
  program_.tensors[at(hidden)].released_at = update;
  EXPECT_EQ(refusal(), "accepted");
  // `update` gets a workspace there: the bytes are not free while it runs.
  op("update").workspace_bytes = 64;
  op("update").workspace_offset = placement(op("forward").operands[2]).offset;
  EXPECT_THAT(refusal(), clause(2));
  program_.tensors[at(hidden)].released_at = kNone;
  EXPECT_EQ(refusal(), "accepted");
}

/// The weight comes back to another place; with a second copy it comes back before it left.
TEST_F(Check, ASecondPlaceWhileTheFirstIsNeededIsRefusedInProgramsWithSinglePlacements) {
  program_.single_placements = true;
  EXPECT_EQ(refusal(), "accepted");
  Instruction& in = steady()[at(copy_index(kWeight, false))];
  Placement second = placement(in.to);
  second.offset = align_up(plan_.device_bytes(), 64);
  plan_.device_bytes() = limits_.spaces[0].bytes = second.offset + second.bytes;
  plan_.placements.push_back(second);
  Instruction early = in;
  early.to = static_cast<PlacementId>(plan_.placements.size()) - 1;
  insert(plan_.steady, op_index("update"), early);
  EXPECT_THAT(refusal(), AllOf(clause(6), HasSubstr("after it got a place at")));
  program_.single_placements = false;
  EXPECT_EQ(refusal(), "accepted");
}

}  // namespace
}  // namespace tidepool
