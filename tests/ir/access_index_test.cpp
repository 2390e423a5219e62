#include "ir/access_index.h"

#include <gtest/gtest.h>

#include "support/program_builder.h"
#include "support/random_program.h"

namespace tidepool {
namespace {

using enum AccessMode;
using testing::ProgramBuilder;

struct Example {
  Program program;
  TensorId plain, weight, fed, collected, both;
};

Example example() {
  ProgramBuilder b;
  Example e;
  e.plain = b.tensor("plain", 64);
  e.weight = b.tensor("weight", 64, true);
  e.fed = b.tensor("fed", 64);
  e.collected = b.tensor("collected", 64);
  e.both = b.tensor("host only", 64);
  b.host("0", {{e.fed, write}, {e.both, write}});
  b.device("1", {{e.weight, read}, {e.plain, write}}, Nanos{1});
  b.device("2", {{e.fed, read}, {e.plain, update}}, Nanos{1});
  b.device("3", {{e.plain, read}, {e.collected, write}}, Nanos{1});
  b.device("4", {{e.weight, update}}, Nanos{1});
  b.host("5", {{e.collected, read}, {e.both, read}});
  b.device("6", {{e.plain, write}}, Nanos{1});
  e.program = b.build();
  return e;
}

TEST(AccessIndex, ListsTheAccessesOfATensorInOrderWithTheirOperands) {
  const Example e = example();
  const AccessIndex index(e.program);
  const auto list = index.accesses(e.plain);
  ASSERT_EQ(list.size(), 4u);
  EXPECT_EQ(list[0].op, 1);
  EXPECT_EQ(list[0].operand, 1);
  EXPECT_EQ(list[1].op, 2);
  EXPECT_EQ(list[1].operand, 1);
  EXPECT_EQ(list[2].op, 3);
  EXPECT_EQ(list[2].operand, 0);
  EXPECT_EQ(list[3].op, 6);
}

TEST(AccessIndex, EveryWriteAndUpdateMakesAVersion) {
  const Example e = example();
  const AccessIndex index(e.program);
  const auto list = index.accesses(e.plain);
  EXPECT_EQ(list[0].version_read, kNone);
  EXPECT_EQ(list[0].version_written, 1);
  EXPECT_EQ(list[1].version_read, 1);
  EXPECT_EQ(list[1].version_written, 2);
  EXPECT_EQ(list[2].version_read, 2);
  EXPECT_EQ(list[2].version_written, kNone);
  EXPECT_EQ(list[3].version_read, kNone);
  EXPECT_EQ(list[3].version_written, 3);
}

TEST(AccessIndex, APersistentTensorStartsWithVersionZero) {
  const Example e = example();
  const AccessIndex index(e.program);
  const auto list = index.accesses(e.weight);
  EXPECT_EQ(list[0].version_read, 0);
  EXPECT_EQ(list[1].version_read, 0);
  EXPECT_EQ(list[1].version_written, 1);
}

TEST(AccessIndex, GapsLieBetweenSuccessiveAccesses) {
  const Example e = example();
  const AccessIndex index(e.program);
  const auto gaps = index.gaps(e.plain);
  ASSERT_EQ(gaps.size(), 3u);
  EXPECT_EQ(gaps[0].from, 1);
  EXPECT_EQ(gaps[0].to, 2);
  EXPECT_EQ(gaps[0].version, 1);
  EXPECT_EQ(gaps[1].from, 2);
  EXPECT_EQ(gaps[1].to, 3);
  EXPECT_EQ(gaps[1].version, 2);
  EXPECT_EQ(gaps[2].from, 3);
  EXPECT_EQ(gaps[2].to, 6);
  for (const Gap& gap : gaps) {
    EXPECT_EQ(gap.tensor, e.plain);
    EXPECT_FALSE(gap.wraps);
    EXPECT_EQ(gap.kind, GapKind::device);
  }
}

TEST(AccessIndex, APersistentTensorsLastGapWrapsIntoTheNextIteration) {
  const Example e = example();
  const AccessIndex index(e.program);
  const auto gaps = index.gaps(e.weight);
  ASSERT_EQ(gaps.size(), 2u);
  EXPECT_FALSE(gaps[0].wraps);
  EXPECT_EQ(gaps[0].version, 0);
  EXPECT_TRUE(gaps[1].wraps);
  EXPECT_EQ(gaps[1].from, 4);
  EXPECT_EQ(gaps[1].to, 1);
  EXPECT_EQ(gaps[1].version, 1);
}

TEST(AccessIndex, APersistentTensorWithOneAccessHasOneGapAroundTheIteration) {
  ProgramBuilder b;
  const TensorId w = b.tensor("w", 64, true);
  b.device("only", {{w, update}}, Nanos{1});
  const AccessIndex index(b.build());
  ASSERT_EQ(index.gaps().size(), 1u);
  EXPECT_TRUE(index.gaps()[0].wraps);
  EXPECT_EQ(index.gaps()[0].from, 0);
  EXPECT_EQ(index.gaps()[0].to, 0);
}

TEST(AccessIndex, WhatHasItsHomeOnTheDeviceIsKeptOverTheIterationsEndOnly) {
  Example e = example();
  e.program.tensors[static_cast<std::size_t>(e.weight)].home = Home::device;
  const AccessIndex index(e.program);
  ASSERT_EQ(index.gaps(e.weight).size(), 2u);
  EXPECT_EQ(index.gaps(e.weight)[0].kind, GapKind::device);
  EXPECT_EQ(index.gaps(e.weight)[1].kind, GapKind::kept);
}

TEST(AccessIndex, WhereTheAccessesHappenDecidesTheKindOfTheGap) {
  const Example e = example();
  const AccessIndex index(e.program);
  ASSERT_EQ(index.gaps(e.fed).size(), 1u);
  EXPECT_EQ(index.gaps(e.fed)[0].kind, GapKind::upload);
  ASSERT_EQ(index.gaps(e.collected).size(), 1u);
  EXPECT_EQ(index.gaps(e.collected)[0].kind, GapKind::download);
  ASSERT_EQ(index.gaps(e.both).size(), 1u);
  EXPECT_EQ(index.gaps(e.both)[0].kind, GapKind::host);
}

TEST(AccessIndex, GapIdsCountThroughAllTensorsInOrder) {
  const Program program = testing::random_program(3);
  const AccessIndex index(program);
  GapId next = 0;
  for (TensorId t = 0; t < static_cast<TensorId>(program.tensors.size()); ++t) {
    EXPECT_EQ(index.first_gap(t), next);
    const std::size_t accesses = index.accesses(t).size();
    const bool persistent = program.tensors[static_cast<std::size_t>(t)].persistent;
    EXPECT_EQ(index.gaps(t).size(), accesses - (persistent ? 0 : 1));
    next += static_cast<GapId>(index.gaps(t).size());
  }
  EXPECT_EQ(static_cast<std::size_t>(next), index.gaps().size());
}

}  // namespace
}  // namespace tidepool
