#include "lower/lower.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "base/file.h"
#include "base/json.h"
#include "check/check.h"
#include "lower/plan_file.h"
#include "sim/simulate.h"
#include "support/odd_program.h"
#include "support/program_builder.h"
#include "support/random_program.h"
#include "support/sanitized.h"

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
  EXPECT_LE(lowered.plan.device_bytes(), budget.device);
  const auto proof = check(program, lowered.plan, {budget.device, budget.host});
  EXPECT_TRUE(proof) << proof.error().message;
}

/// What is asked for its stop often enough ends soon, wherever it is.
TEST(Lower, GivesUpWhereverItIsAsked) {
  const Program program = random_program(3);
  Lowering lowering(program, byte_a_nanosecond());
  const Strategy strategy = keep(lowering);
  int asked = 0;
  LowerOptions options;
  options.allow_streaming = false;
  options.packing.give_up = [&] { return ++asked < 0; };
  ASSERT_TRUE(lowering.lower(strategy, {kUnlimited}, options));
  const int questions = asked;
  EXPECT_GE(questions, 5) << "before each pass, and while addresses are looked for";
  for (int last = 1; last <= questions; ++last) {
    asked = 0;
    options.packing.give_up = [&] { return ++asked >= last; };
    EXPECT_FALSE(lowering.lower(strategy, {kUnlimited}, options)) << last;
  }
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
  for (std::uint64_t seed = 0; seed < testing::usual_or(40U, 10U); ++seed) {
    SCOPED_TRACE(seed);
    const Program program = random_program(seed);
    const Machine machine = random_machine(seed);
    Lowering lowering(program, machine);
    const Bytes least = smallest_budget(program, machine.alignment()).bytes;
    const auto unlimited = lowering.lower(keep(lowering), {kUnlimited, 0});
    ASSERT_TRUE(unlimited);
    const Bytes most = unlimited->plan.device_bytes();
    for (const double share : {1.0, 0.75, 0.5, 0.25, 0.1, 0.0}) {
      const Bytes budget = least + static_cast<Bytes>(share * static_cast<double>(most - least));
      const auto lowered =
          lowering.lower(random_strategy(program, lowering.index(), 1 - share, seed), {budget, 0});
      ASSERT_TRUE(lowered) << budget << ": " << lowered.error().message;
      expect_proved(program, *lowered, {budget, 0});
    }
  }
}

/// The largest bytes went to the ground, and what stays taken behind them left holes on both sides.
TEST(Lower, WhatStaysTakenIsPlacedSoThatTheSmallestBudgetIsEnough) {
  using enum AccessMode;
  testing::ProgramBuilder b;
  const TensorId kept = b.tensor("kept", 512);
  const TensorId x = b.tensor("x", 512);
  const TensorId y = b.tensor("y", 512);
  b.device("first", {{kept, write}}, Nanos{10}, 1000);
  b.device("second", {{x, write}, {y, write}}, Nanos{10});
  Program program = b.build();
  program.tensors[static_cast<std::size_t>(kept)].released_at = 1;
  Lowering lowering(program, byte_a_nanosecond(8));
  const Bytes least = smallest_budget(program, 8).bytes;
  EXPECT_EQ(least, 3 * 512);
  const auto lowered = lowering.lower(keep(lowering), {least, 0});
  ASSERT_TRUE(lowered) << lowered.error().message;
  expect_proved(program, *lowered, {least, 0});
}

/// Where bytes may not move the smallest budget is a lower bound: what an error names instead is
/// enough.
TEST(Lower, TheBudgetNamedWhereAddressesAreMissingIsEnough) {
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(seed);
    const Program program = testing::odd_program(seed, testing::HostUse::plain, {9, 15, true});
    const Machine machine = byte_a_nanosecond(8);
    Lowering lowering(program, machine);
    Bytes budget = smallest_budget(program, 8).bytes;
    auto lowered = lowering.lower(keep(lowering), {budget, 0});
    if (!lowered && lowered.error().code == ErrorCode::infeasible) {
      ASSERT_TRUE(lowered.error().smallest_feasible) << lowered.error().message;
      budget = *lowered.error().smallest_feasible;
      lowered = lowering.lower(keep(lowering), {budget, 0});
    }
    ASSERT_TRUE(lowered) << lowered.error().message;
    expect_proved(program, *lowered, {budget, 0});
  }
}

/// Host bytes stay taken until a host op releases them, while a recomputation copies them in: they
/// were handed on before that op was over.
TEST(Lower, HostBytesAreHandedOnWhenAllWhoHoldThemAreDone) {
  const std::string path = TIDEPOOL_SOURCE_FOLDER "/tests/regress/host_release.plan.json";
  const auto file = read_plan(*read_file(path), path);
  ASSERT_TRUE(file) << file.error().message;
  Lowering lowering(file->program, file->machine);
  const auto lowered = lowering.lower(file->strategy, file->budget());
  ASSERT_TRUE(lowered) << lowered.error().message;
  const auto proof =
      check(file->program, lowered->plan, check_limits(file->machine, file->budget()));
  EXPECT_TRUE(proof) << proof.error().message;
}

TEST(Lower, ThePredictedTimeIsTheSimulatedOne) {
  for (std::uint64_t seed = 100; seed < 120; ++seed) {
    const Program program = random_program(seed);
    const Machine machine = random_machine(seed);
    Lowering lowering(program, machine);
    const Bytes least = smallest_budget(program, machine.alignment()).bytes;
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
  EXPECT_EQ(lowered->plan.device_bytes(), least);
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
    const Bytes least = smallest_budget(program, machine.alignment()).bytes;
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

TEST(Lower, WhatIsNotFasterIsNotPlaced) {
  const Program program = tiny_training();
  Lowering lowering(program, byte_a_nanosecond(64));
  LowerOptions options;
  options.allow_streaming = false;
  const Budget budget{2 * smallest_budget(program, 64).bytes, 0};
  const auto lowered = lowering.lower(keep(lowering), budget, options);
  ASSERT_TRUE(lowered);
  options.faster_than = lowered->iteration_time;
  const auto refused = lowering.lower(keep(lowering), budget, options);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::infeasible);
  options.faster_than += Nanos{1};
  const auto again = lowering.lower(keep(lowering), budget, options);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->iteration_time, lowered->iteration_time);
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
  for (std::uint64_t seed = 0; seed < testing::usual_or(40U, 10U); ++seed) {
    SCOPED_TRACE(seed);
    const Program program = random_program(seed);
    Lowering lowering(program, random_machine(seed));
    const Bytes least = smallest_budget(program, 64).bytes;
    const Strategy strategy = random_strategy(program, lowering.index(), 0.7, seed);
    const auto free = lowering.lower(strategy, {least * 3, 0});
    ASSERT_TRUE(free);
    for (const double share : {1.0, 0.9, 0.7, 0.4}) {
      const Budget budget{least * 3,
                          static_cast<Bytes>(share * static_cast<double>(free->plan.host_bytes()))};
      const auto lowered = lowering.lower(strategy, budget);
      if (!lowered) {
        EXPECT_LT(share, 1.0);
        EXPECT_EQ(lowered.error().code, ErrorCode::infeasible);
        EXPECT_THAT(lowered.error().message, HasSubstr("host budget"));
        ++refused;
        continue;
      }
      EXPECT_LE(lowered->plan.host_bytes(), budget.host);
      expect_proved(program, *lowered, budget);
      ++met;
    }
  }
  EXPECT_GT(refused, 0);
  EXPECT_GT(met, testing::usual_or(40, 10));
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
  EXPECT_THAT(names, ::testing::ElementsAre("expand and time", "place on the device", "place away",
                                            "emit"));
}

TEST(Lower, AddressesAreAlignedToTheMachine) {
  Machine machine = byte_a_nanosecond(512);
  const Program program = random_program(4);
  Lowering lowering(program, machine);
  const auto lowered = lowering.lower(keep(lowering), {kUnlimited, 0});
  ASSERT_TRUE(lowered);
  EXPECT_EQ(lowered->plan.arenas[0].alignment, 512);
  for (const Placement& p : lowered->plan.placements) EXPECT_EQ(p.offset % 512, 0);
}

// ---- what a strategy fixes: triggers, barriers, addresses

/// A chain of ops of 1000 ns over a tensor that is used by the first and the last.
class Hints : public ::testing::Test {
 protected:
  Hints() {
    using enum AccessMode;
    testing::ProgramBuilder b;
    const TensorId big = b.tensor("big", 512);
    const TensorId other = b.tensor("other", 512);
    TensorId chain = b.tensor("x0", 64);
    b.device("first", {{big, write}, {other, write}, {chain, write}}, Nanos{1000});
    for (int i = 1; i < 8; ++i) {
      const TensorId next = b.tensor(fmt::format("x{}", i), 64);
      b.device(fmt::format("middle{}", i), {{chain, read}, {next, write}}, Nanos{1000});
      chain = next;
    }
    b.device("last", {{chain, read}, {big, read}, {other, read}}, Nanos{1000});
    program_ = b.build();
    lowering_ = std::make_unique<Lowering>(program_, byte_a_nanosecond(64));
    strategy_ = keep_everything(program_, lowering_->index(), least_workspace_algorithms(program_));
    for (const TensorId t : {big, other}) {
      strategy_.gaps[static_cast<std::size_t>(lowering_->index().first_gap(t))] = Decision::swap;
    }
    hint_.gap = lowering_->index().first_gap(big);
  }

  /// Lowers with `hint_`, proves the plan and returns it.
  Lowered lower() {
    strategy_.hints = {hint_};
    auto lowered = lowering_->lower(strategy_, budget_);
    if (!lowered) {
      ADD_FAILURE() << lowered.error().message;
      return {};
    }
    const auto proof = check(program_, lowered->plan, {budget_.device, 0});
    EXPECT_TRUE(proof) << proof.error().message;
    return std::move(*lowered);
  }
  std::string refusal() {
    strategy_.hints = {hint_};
    const auto lowered = lowering_->lower(strategy_, budget_);
    if (lowered) return "accepted";
    EXPECT_EQ(lowered.error().code, ErrorCode::bad_input);
    return lowered.error().message;
  }
  OpId op(const std::string& name) const {
    const auto found = std::find_if(program_.ops.begin(), program_.ops.end(),
                                    [&](const Op& x) { return x.name == name; });
    return static_cast<OpId>(found - program_.ops.begin());
  }
  static const Step& copy_of(const Lowered& l, const Program& program, const std::string& tensor,
                             StepKind kind) {
    for (std::size_t i = 0; i < l.steps.size(); ++i) {
      const Instruction& x = l.plan.steady.instructions[i];
      if (l.steps[i].kind != kind) continue;
      const Placement& p = l.plan.placements[static_cast<std::size_t>(x.from)];
      if (program.tensors[static_cast<std::size_t>(p.tensor)].name == tensor) return l.steps[i];
    }
    ADD_FAILURE() << "no copy of " << tensor;
    return l.steps.front();
  }
  const Step& out(const Lowered& l) { return copy_of(l, program_, "big", StepKind::copy_out); }
  const Step& in(const Lowered& l) { return copy_of(l, program_, "big", StepKind::copy_in); }
  const Step& step(const Lowered& l, const std::string& name) {
    for (std::size_t i = 0; i < l.steps.size(); ++i) {
      const Instruction& x = l.plan.steady.instructions[i];
      if (x.kind == InstructionKind::op && x.op == op(name)) return l.steps[i];
    }
    ADD_FAILURE() << "no op " << name;
    return l.steps.front();
  }

  Program program_;
  std::unique_ptr<Lowering> lowering_;
  Strategy strategy_;
  CopyHint hint_;
  Budget budget_{1 << 20, 0};
};

TEST_F(Hints, TheCopyOutStartsWithItsTrigger) {
  EXPECT_EQ(out(lower()).start, Nanos{1000});
  hint_.out_trigger = op("middle3");
  EXPECT_EQ(out(lower()).start, Nanos{3000});
}

TEST_F(Hints, TheCopyInStartsWithItsTrigger) {
  hint_.in_trigger = op("middle6");
  EXPECT_EQ(in(lower()).start, Nanos{6000});
  hint_.in_trigger = op("last");
  const Lowered late = lower();
  EXPECT_EQ(in(late).start, Nanos{8000});
  EXPECT_EQ(step(late, "last").start, Nanos{8512});
}

TEST_F(Hints, AnEarlyCopyInWaitsForNoOp) {
  hint_.in_trigger = op("last");
  hint_.in_early = true;
  const Lowered lowered = lower();
  EXPECT_GE(in(lowered).start, out(lowered).end);
  EXPECT_LT(in(lowered).start, Nanos{3000});
  EXPECT_EQ(step(lowered, "last").start, Nanos{8000});
}

TEST_F(Hints, ABarrierWaitsForTheCopyOut) {
  hint_.out_trigger = op("middle3");
  hint_.out_barrier = op("middle3");
  EXPECT_EQ(step(lower(), "middle3").start, Nanos{3512});
}

TEST_F(Hints, ABarrierWaitsForTheCopyIn) {
  hint_.in_trigger = op("middle4");
  hint_.in_barrier = op("middle4");
  const Lowered lowered = lower();
  EXPECT_EQ(in(lowered).start, Nanos{4000});
  EXPECT_EQ(step(lowered, "middle4").start, Nanos{4512});
}

TEST_F(Hints, TheCopyInGoesToItsAddress) {
  hint_.device_offset = 4096;
  const Lowered lowered = lower();
  const auto& instructions = lowered.plan.steady.instructions;
  const auto index = static_cast<std::size_t>(&in(lowered)-lowered.steps.data());
  EXPECT_EQ(lowered.plan.placements[static_cast<std::size_t>(instructions[index].to)].offset, 4096);
}

TEST_F(Hints, AddressesThatCannotBeHadAreRefused) {
  hint_.device_offset = 100;
  EXPECT_THAT(refusal(), HasSubstr("not aligned"));
  hint_.device_offset = 1 << 20;
  EXPECT_THAT(refusal(), HasSubstr("outside the budget"));
  hint_.device_offset = 256;
  strategy_.hints = {hint_};
  CopyHint other = hint_;
  other.gap = lowering_->index().first_gap(1);
  strategy_.hints.push_back(other);
  const auto clash = lowering_->lower(strategy_, budget_);
  ASSERT_FALSE(clash);
  EXPECT_THAT(clash.error().message,
              ::testing::AllOf(HasSubstr("'big'"), HasSubstr("'other'"), HasSubstr("overlapping")));
}

TEST_F(Hints, NonsenseIsRefusedWithTensorAndOp) {
  const CopyHint good = hint_;
  hint_.in_trigger = op("first");
  EXPECT_THAT(refusal(), ::testing::AllOf(HasSubstr("'big' after op 'first'"),
                                          HasSubstr("op 'first' is not in the gap")));
  hint_ = good;
  hint_.in_early = true;
  EXPECT_THAT(refusal(), HasSubstr("a copy in without a trigger starts early"));
  hint_ = good;
  hint_.out_trigger = op("middle5");
  hint_.in_trigger = op("middle4");
  EXPECT_THAT(refusal(), HasSubstr("issued after what should follow it"));
  hint_ = good;
  hint_.in_trigger = op("middle5");
  hint_.in_barrier = op("middle4");
  EXPECT_THAT(refusal(), HasSubstr("issued after the op that waits for it"));
  hint_ = good;
  hint_.gap = 999;
  EXPECT_THAT(refusal(), HasSubstr("names gap 999"));
  hint_ = good;
  strategy_.gaps[static_cast<std::size_t>(hint_.gap)] = Decision::keep;
  EXPECT_THAT(refusal(), HasSubstr("neither swapped nor dropped"));
}

/// A weight that leaves over the end of the iteration and is awaited early in the next one.
TEST(HintsOverTheBoundary, TriggersAndBarriersMeanTheRightIteration) {
  using enum AccessMode;
  testing::ProgramBuilder b;
  const TensorId weight = b.tensor("weight", 512, true);
  TensorId x = b.tensor("x0", 64);
  b.device("a", {{x, write}}, Nanos{1000});
  const TensorId y = b.tensor("y", 64);
  b.device("b", {{x, read}, {y, write}}, Nanos{1000});
  b.device("use", {{weight, read}, {y, update}}, Nanos{1000});
  b.device("update", {{y, read}, {weight, update}}, Nanos{1000});
  b.device("after", {{y, read}}, Nanos{1000});
  const Program program = b.build();
  Lowering lowering(program, byte_a_nanosecond(64));
  Strategy strategy =
      keep_everything(program, lowering.index(), least_workspace_algorithms(program));
  const GapId wrap = lowering.index().first_gap(weight) + 1;
  strategy.gaps[static_cast<std::size_t>(wrap)] = Decision::swap;
  const auto lower = [&](const CopyHint& hint) {
    strategy.hints = {hint};
    auto lowered = lowering.lower(strategy, {1 << 20, 0});
    EXPECT_TRUE(lowered) << lowered.error().message;
    EXPECT_TRUE(check(program, lowered->plan, {1 << 20, 0}));
    return std::move(*lowered);
  };
  const auto start = [&](const Lowered& l, StepKind kind) {
    for (const Step& s : l.steps) {
      if (s.kind == kind) return s.start;
    }
    return Nanos{-1};
  };
  CopyHint hint;
  hint.gap = wrap;
  hint.out_trigger = OpId{4};
  hint.in_trigger = OpId{1};
  hint.in_barrier = OpId{1};
  Lowered lowered = lower(hint);
  EXPECT_EQ(start(lowered, StepKind::copy_out), Nanos{4512});
  EXPECT_EQ(start(lowered, StepKind::copy_in), Nanos{1000});
  EXPECT_EQ(lowered.iteration_time, Nanos{5512});
  hint.in_trigger.reset();
  hint.in_barrier.reset();
  hint.out_barrier = OpId{0};  // of the next iteration
  lowered = lower(hint);
  EXPECT_EQ(start(lowered, StepKind::copy_out), Nanos{4000});
  EXPECT_EQ(lowered.iteration_time, Nanos{5000});
  hint = {};
  hint.gap = wrap;
  hint.out_trigger = OpId{0};
  strategy.hints = {hint};
  const auto refused = lowering.lower(strategy, {1 << 20, 0});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("in which the gap begins"));
}

}  // namespace
}  // namespace tidepool
