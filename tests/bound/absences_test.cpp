#include "bound/absences.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "support/program_builder.h"

namespace tidepool {
namespace {

using enum AccessMode;
constexpr Nanos kTime{1000};

std::vector<Absence> absences(const Program& program) {
  return absences_of(program, AccessIndex(program));
}

TEST(Absences, ABatchReadTwiceIsStillOnTheHost) {
  testing::ProgramBuilder b;
  const TensorId x = b.tensor("x", 64);
  b.host("feed", {{x, write}});
  b.device("first", {{x, read}}, kTime);
  b.device("second", {{x, read}}, kTime);
  const auto all = absences(b.build());
  ASSERT_EQ(all.size(), 2U);
  EXPECT_TRUE(all[0].host_has_it);
  EXPECT_FALSE(all[0].dead);
  EXPECT_TRUE(all[1].upload);
}

TEST(Absences, WhatNobodyChangesIsOnTheHostForEver) {
  testing::ProgramBuilder b;
  const TensorId w = b.tensor("w", 64, true);
  const TensorId y = b.tensor("y", 64);
  b.device("first", {{w, read}, {y, write}}, kTime);
  b.device("second", {{w, read}, {y, read}}, kTime);
  const auto all = absences(b.build());
  ASSERT_EQ(all.size(), 3U);
  EXPECT_TRUE(all[0].host_has_it);
  EXPECT_TRUE(all[1].host_has_it);
  EXPECT_TRUE(all[1].wraps);
  EXPECT_TRUE(all[2].host_has_it) << "made of the same values in every iteration";
}

TEST(Absences, WhatIsOverwrittenNeedNotComeBack) {
  testing::ProgramBuilder b;
  const TensorId x = b.tensor("x", 64);
  b.device("make", {{x, write}}, kTime);
  b.device("use", {{x, read}}, kTime);
  b.device("make again", {{x, write}}, kTime);
  b.last().random = true;
  const auto all = absences(b.build());
  ASSERT_EQ(all.size(), 2U);
  EXPECT_FALSE(all[0].dead);
  EXPECT_TRUE(all[1].dead);
}

/// Between the use in the next iteration and the update of this one the value goes out at most
/// once.
TEST(Absences, AWeightsValueLivesFromItsUpdateToTheNext) {
  testing::ProgramBuilder b;
  const TensorId w = b.tensor("w", 64, true);
  b.device("forward", {{w, read}}, kTime);
  b.device("backward", {{w, read}}, kTime);
  b.device("update", {{w, update}}, kTime);
  b.device("look", {{w, read}}, kTime);
  const auto all = absences(b.build());
  ASSERT_EQ(all.size(), 4U);
  const auto& [to_backward, to_update, to_look, over_the_end] =
      std::tie(all[0], all[1], all[2], all[3]);
  EXPECT_EQ(to_look.before, kNone) << "a new value";
  EXPECT_FALSE(to_look.carried);
  EXPECT_EQ(over_the_end.before, 2);
  EXPECT_EQ(to_backward.before, 3);
  EXPECT_EQ(to_update.before, 0);
  for (const Absence& a : {to_backward, to_update, over_the_end}) {
    EXPECT_TRUE(a.carried);
    EXPECT_EQ(a.born, 2);
    EXPECT_FALSE(a.host_has_it);
  }
}

TEST(Absences, AHostOpInBetweenLeavesTheDeviceFree) {
  testing::ProgramBuilder b;
  const TensorId x = b.tensor("x", 64);
  b.device("make", {{x, write}}, kTime);
  b.last().random = true;
  b.host("change", {{x, update}});
  b.device("use", {{x, read}}, kTime);
  const auto all = absences(b.build());
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].from, 0);
  EXPECT_EQ(all[0].to, 2);
  EXPECT_TRUE(all[0].dead) << "what comes in is another value";
  EXPECT_EQ(all[0].gap, kNone);
  EXPECT_TRUE(all[1].upload);
  EXPECT_EQ(all[1].to, 2);
}

TEST(Absences, WhatTheHostMakesAnewComesInOnceAnIteration) {
  testing::ProgramBuilder b;
  const TensorId x = b.tensor("x", 64);
  const TensorId table = b.tensor("table", 64);
  b.host("feed", {{x, write}});
  b.host("fill", {{table, write}});
  b.last().random = false;
  b.device("first", {{x, read}, {table, read}}, kTime);
  b.device("second", {{x, read}}, kTime);
  const auto all = absences(b.build());
  ASSERT_EQ(all.size(), 2U) << "the table is the same in every iteration";
  EXPECT_FALSE(all[0].upload);
  EXPECT_EQ(all[0].from, 2);
  const Absence& upload = all[1];
  EXPECT_TRUE(upload.upload);
  EXPECT_TRUE(upload.host_has_it);
  EXPECT_TRUE(upload.wraps);
  EXPECT_EQ(upload.from, 2);
  EXPECT_EQ(upload.to, 2);
}

TEST(Absences, WhatTheHostMakesIsUploadedForEachOfItsValues) {
  testing::ProgramBuilder b;
  const TensorId x = b.tensor("x", 64, true);
  b.device("before", {{x, read}}, kTime);
  b.host("change", {{x, update}});
  b.device("use", {{x, read}}, kTime);
  b.host("change again", {{x, update}});
  const auto all = absences(b.build());
  EXPECT_EQ(std::ranges::count_if(all, [](const Absence& a) { return a.upload; }), 1)
      << "the value that the iteration begins with is left out";
}

}  // namespace
}  // namespace tidepool
