#include "ir/program.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/program_builder.h"
#include "support/random_program.h"

namespace tidepool {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::tiny_training;

std::string refusal(const Program& program) {
  const auto valid = validate(program);
  if (valid) return "accepted";
  EXPECT_EQ(valid.error().code, ErrorCode::bad_input);
  return valid.error().message;
}

Op& op(Program& p, const std::string& name) {
  return *std::find_if(p.ops.begin(), p.ops.end(), [&](const Op& o) { return o.name == name; });
}

TEST(Validate, AcceptsATrainingIteration) {
  const auto valid = validate(tiny_training());
  EXPECT_TRUE(valid) << valid.error().message;
}

TEST(Validate, AcceptsRandomPrograms) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const auto valid = validate(testing::random_program(seed));
    EXPECT_TRUE(valid) << seed << ": " << valid.error().message;
  }
}

TEST(Validate, RefusesAProgramWithoutOps) {
  Program p = tiny_training();
  p.ops.clear();
  EXPECT_THAT(refusal(p), HasSubstr("no ops"));
  EXPECT_THAT(refusal(Program{}), HasSubstr("no ops"));
}

TEST(Validate, RefusesATensorWithoutName) {
  Program p = tiny_training();
  p.tensors[2].name.clear();
  EXPECT_THAT(refusal(p), HasSubstr("tensor name ''"));
}

TEST(Validate, RefusesTwoTensorsOfOneName) {
  Program p = tiny_training();
  p.tensors[2].name = p.tensors[0].name;
  EXPECT_THAT(refusal(p), HasSubstr("tensor name 'input'"));
}

TEST(Validate, RefusesTensorsWithoutBytes) {
  for (const Bytes bytes : {Bytes{0}, Bytes{-1}}) {
    Program p = tiny_training();
    p.tensors[2].bytes = bytes;
    EXPECT_THAT(refusal(p), HasSubstr("tensor 'hidden'"));
  }
}

TEST(Validate, RefusesAnOpWithoutName) {
  Program p = tiny_training();
  p.ops[1].name.clear();
  EXPECT_THAT(refusal(p), HasSubstr("op name ''"));
}

TEST(Validate, RefusesTwoOpsOfOneName) {
  Program p = tiny_training();
  p.ops[1].name = "head";
  EXPECT_THAT(refusal(p), HasSubstr("op name 'head'"));
}

TEST(Validate, RefusesAnOpWithoutAlgorithm) {
  Program p = tiny_training();
  op(p, "head").algorithms.clear();
  EXPECT_THAT(refusal(p), HasSubstr("op 'head': has no algorithm"));
}

TEST(Validate, RefusesNegativeWorkspaceAndTime) {
  Program p = tiny_training();
  op(p, "head").algorithms[0].workspace = -1;
  EXPECT_THAT(refusal(p), HasSubstr("op 'head': negative"));
  p = tiny_training();
  op(p, "head").algorithms[0].time = Nanos{-1};
  EXPECT_THAT(refusal(p), HasSubstr("op 'head': negative"));
}

TEST(Validate, RefusesWorkspaceOfAHostOp) {
  Program p = tiny_training();
  op(p, "feed").algorithms[0].workspace = 64;
  EXPECT_THAT(refusal(p), HasSubstr("op 'feed': host ops have no workspace"));
}

TEST(Validate, RefusesAnAccessToATensorThatDoesNotExist) {
  for (const TensorId tensor : {TensorId{-1}, TensorId{5}}) {
    Program p = tiny_training();
    op(p, "head").accesses[0].tensor = tensor;
    EXPECT_THAT(refusal(p), HasSubstr("op 'head': accesses tensor"));
  }
}

TEST(Validate, RefusesTwoAccessesOfOneOpToOneTensor) {
  Program p = tiny_training();
  op(p, "head").accesses.push_back(op(p, "head").accesses[0]);
  EXPECT_THAT(refusal(p), HasSubstr("op 'head': accesses tensor 'hidden' twice"));
}

TEST(Validate, RefusesAReadBeforeTheFirstWrite) {
  Program p = tiny_training();
  op(p, "forward").accesses[2].mode = AccessMode::read;
  EXPECT_THAT(refusal(p),
              HasSubstr("op 'forward': reads tensor 'hidden' before anything wrote it"));
}

TEST(Validate, AnUpdateNeedsAnOldValueToo) {
  Program p = tiny_training();
  op(p, "forward").accesses[2].mode = AccessMode::update;
  EXPECT_THAT(refusal(p),
              HasSubstr("op 'forward': reads tensor 'hidden' before anything wrote it"));
}

/// Fused optimizers and batch norm of other frameworks do.
TEST(Validate, AnUpdateOfPersistentStateMayWriteSomethingElseAndIsNotRecomputable) {
  for (const AccessMode mode : {AccessMode::update, AccessMode::write}) {
    Program p = tiny_training();
    op(p, "update").accesses[0].mode = AccessMode::update;
    op(p, "update").accesses[1].mode = mode;
    EXPECT_EQ(refusal(p), "accepted");
    op(p, "update").recomputable = true;
    EXPECT_THAT(refusal(p), HasSubstr("op 'update': updates persistent state, so it cannot"));
  }
}

TEST(Validate, WhatStaysTakenIsReleasedBehindItsLastAccess) {
  Program p = tiny_training();
  const auto hidden = static_cast<std::size_t>(op(p, "forward").accesses[2].tensor);
  const auto last = static_cast<OpId>(p.ops.size()) - 1;
  p.tensors[hidden].released_at = last - 1;
  EXPECT_EQ(refusal(p), "accepted");
  p.tensors[hidden].released_at = last;
  EXPECT_THAT(refusal(p), HasSubstr("'collect', which runs elsewhere than op 'backward'"));
  for (const OpId op : {0, 1, last + 1}) {
    p.tensors[hidden].released_at = op;
    EXPECT_THAT(refusal(p), HasSubstr("tensor 'hidden': is released at op"));
  }
  p = tiny_training();
  for (Tensor& t : p.tensors) {
    if (t.persistent) t.released_at = last;
  }
  EXPECT_THAT(refusal(p), HasSubstr("is persistent and released at an op"));
}

TEST(Validate, PinnedTensorsAreUsedAtOnePlace) {
  Program p = tiny_training();
  const auto hidden = static_cast<std::size_t>(op(p, "forward").accesses[2].tensor);
  p.tensors[hidden].pinned = true;
  EXPECT_EQ(refusal(p), "accepted");
  for (Tensor& t : p.tensors) t.pinned = true;
  EXPECT_THAT(refusal(p), HasSubstr("accesses pinned tensor"));
}

TEST(Validate, AHomeIsOfPersistentTensorsThatDeviceOpsUse) {
  Program p = tiny_training();
  const auto weight = static_cast<std::size_t>(op(p, "update").accesses[1].tensor);
  p.tensors[weight].home = Home::device;
  EXPECT_EQ(refusal(p), "accepted");
  p.tensors[weight].persistent = false;
  op(p, "forward").accesses[1].mode = AccessMode::write;
  EXPECT_THAT(refusal(p), HasSubstr("tensor 'weight': its home is the device, and it is not pers"));
  p = tiny_training();
  p.tensors.push_back({"steps", 8, TensorKind::optimizer_state, true});
  p.tensors.back().home = Home::device;
  op(p, "feed").accesses.push_back(
      {static_cast<TensorId>(p.tensors.size()) - 1, AccessMode::update});
  EXPECT_THAT(refusal(p), HasSubstr("tensor 'steps': its home is the device, and only host ops"));
}

TEST(Validate, RefusesARecomputableUpdateOfPersistentState) {
  Program p = tiny_training();
  op(p, "update").recomputable = true;
  EXPECT_THAT(refusal(p), HasSubstr("op 'update': updates persistent state, so it cannot"));
}

TEST(Validate, RefusesATensorNobodyAccesses) {
  Program p = tiny_training();
  p.tensors.push_back({"forgotten", 64, TensorKind::activation, false});
  EXPECT_THAT(refusal(p), HasSubstr("tensor 'forgotten' is never accessed"));
}

TEST(Validate, RefusesRoundsThatDoNotSplitTheBatch) {
  Program p = tiny_training();
  p.batch = 7;
  p.sub_batch = 3;
  EXPECT_EQ(p.rounds(), 3);
  EXPECT_TRUE(validate(p));
  for (const std::int64_t sub_batch : {0, -1, 8}) {
    p.sub_batch = sub_batch;
    EXPECT_THAT(refusal(p), HasSubstr("do not split a batch of 7"));
  }
}

TEST(Validate, RefusesOpsOfRoundsThatDoNotExistOrGoBack) {
  Program p = tiny_training();
  p.batch = 2;
  for (const std::int32_t round : {2, -2}) {
    op(p, "backward").round = round;
    EXPECT_THAT(refusal(p), HasSubstr("op 'backward': belongs to round"));
  }
  op(p, "backward").round = 0;
  op(p, "head").round = 1;
  EXPECT_THAT(refusal(p), HasSubstr("op 'backward' of round 0 comes after round 1"));
}

TEST(Validate, AGuardedOpMaySkipOnlyWhatNobodyElseReads) {
  Program p = tiny_training();
  op(p, "update").guard = 4;
  EXPECT_TRUE(validate(p)) << "it updates what keeps its value";
  op(p, "update").guard = 32;
  EXPECT_THAT(refusal(p), HasSubstr("guard 32, they go from 0 to 31"));
  op(p, "update").guard = 4;
  op(p, "backward").guard = 4;
  EXPECT_TRUE(validate(p)) << "its only reader has the same guard";
  op(p, "backward").guard = 3;
  EXPECT_THAT(refusal(p), AllOf(HasSubstr("op 'update': uses tensor 'gradient'"),
                                HasSubstr("not written when guard 3 is off")));
  op(p, "backward").guard = kNone;
  op(p, "update").accesses[1].mode = AccessMode::write;
  EXPECT_THAT(refusal(p), HasSubstr("overwrites persistent tensor 'weight'"));
}

Op with_algorithms(std::vector<Algorithm> algorithms) {
  Op o;
  o.algorithms = std::move(algorithms);
  return o;
}

TEST(LeastWorkspaceAlgorithm, TiesGoToTheFasterAndThenToTheEarlierOne) {
  EXPECT_EQ(least_workspace_algorithm(with_algorithms(
                {{"a", Nanos{1}, 9, true}, {"b", Nanos{9}, 1, true}, {"c", Nanos{2}, 2, true}})),
            1);
  EXPECT_EQ(least_workspace_algorithm(
                with_algorithms({{"a", Nanos{9}, 1, true}, {"b", Nanos{5}, 1, true}})),
            1);
  EXPECT_EQ(least_workspace_algorithm(
                with_algorithms({{"a", Nanos{5}, 1, true}, {"b", Nanos{5}, 1, true}})),
            0);
}

TEST(FastestAlgorithm, TiesGoToTheSmallerWorkspaceAndThenToTheEarlierOne) {
  EXPECT_EQ(fastest_algorithm(with_algorithms(
                {{"a", Nanos{3}, 0, true}, {"b", Nanos{1}, 99, true}, {"c", Nanos{2}, 2, true}})),
            1);
  EXPECT_EQ(
      fastest_algorithm(with_algorithms({{"a", Nanos{1}, 9, true}, {"b", Nanos{1}, 5, true}})), 1);
  EXPECT_EQ(
      fastest_algorithm(with_algorithms({{"a", Nanos{1}, 5, true}, {"b", Nanos{1}, 5, true}})), 0);
}

TEST(ChoosingAlgorithms, ADeterministicOneIsPreferredHoweverSlowOrLarge) {
  const Op o = with_algorithms({{"a", Nanos{1}, 0, false}, {"b", Nanos{9}, 999, true}});
  EXPECT_EQ(fastest_algorithm(o), 1);
  EXPECT_EQ(least_workspace_algorithm(o), 1);
}

TEST(LimitWorkspaces, LargerOnesGoButTheLeastOfEachOpStays) {
  Program p = testing::tiny_training();
  op(p, "forward").algorithms = {
      {"a", Nanos{3}, 10, true}, {"b", Nanos{1}, 99, true}, {"c", Nanos{2}, 20, true}};
  const auto left = [&](Bytes most) {
    Program limited = p;
    limit_workspaces(limited, most);
    std::string names;
    for (const Algorithm& a : op(limited, "forward").algorithms) names += a.name;
    return names;
  };
  EXPECT_EQ(left(99), "abc");
  EXPECT_EQ(left(98), "ac");
  EXPECT_EQ(left(20), "ac");
  EXPECT_EQ(left(0), "a") << "the op needs that much";
}

// Bytes of 8,192 tensors added up to 2^63, and a program "had a peak of 0 B".
TEST(Validate, RefusesBytesThatAddUpToMoreThanCanBeCounted) {
  Program p = testing::tiny_training();
  p.tensors[0].bytes = kMostTensorBytes + 1;
  EXPECT_THAT(refusal(p), AllOf(HasSubstr("tensor 'input'"), HasSubstr("at most")));
  p.tensors[0].bytes = kMostTensorBytes;
  EXPECT_EQ(refusal(p), "accepted");
  // Each access may become a copy: they are counted, not the tensors.
  while (p.ops.size() < 80) {
    Op op = p.ops[1];
    op.name = fmt::format("forward {}", p.ops.size());
    p.ops.insert(p.ops.begin() + 2, std::move(op));
  }
  EXPECT_THAT(refusal(p), AllOf(HasSubstr("tensor 'input'"), HasSubstr("accesses more than")));
}

TEST(Validate, RefusesTimesThatAddUpToMoreThanCanBeCounted) {
  Program p = testing::tiny_training();
  op(p, "forward").algorithms[0].time = kMostIterationTime - Nanos{3000};
  EXPECT_EQ(refusal(p), "accepted");
  op(p, "forward").algorithms[0].time += Nanos{1};
  EXPECT_THAT(refusal(p), AllOf(HasSubstr("op 'update'"), HasSubstr("take longer than")));
}

}  // namespace
}  // namespace tidepool
