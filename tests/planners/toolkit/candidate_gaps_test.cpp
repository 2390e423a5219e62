#include "planners/toolkit/candidate_gaps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planners/toolkit/unstalled_starts.h"
#include "support/swap_programs.h"

namespace tidepool {
namespace {

using ::testing::ElementsAre;
using testing::ms;
using testing::SwapExample;

TEST(UnstalledStarts, AreSumsOfTheOpsBefore) {
  const SwapExample e;
  const std::vector<std::int32_t> algorithms(6, 0);
  EXPECT_THAT(unstalled_starts(e.program, algorithms),
              ElementsAre(ms(0), ms(10), ms(20), ms(40), ms(50), ms(60), ms(70)));
}

TEST(UnstalledStarts, HostOpsTakeNoTime) {
  const Program program = testing::tiny_training();
  const auto starts = unstalled_starts(program, least_workspace_algorithms(program));
  EXPECT_EQ(starts[1], Nanos{0}) << "behind the feed";
  EXPECT_EQ(starts.back(), Nanos{4000});
}

TEST(IdleTime, OfAWrappingGapGoesThroughTheIterationsEnd) {
  const Program program = testing::tiny_training();
  const AccessIndex index(program);
  const auto starts = unstalled_starts(program, least_workspace_algorithms(program));
  const auto gaps = index.gaps(1);  // the weight: forward, update, and around
  ASSERT_EQ(gaps.size(), 2U);
  EXPECT_EQ(idle_time(gaps[0], starts), Nanos{2000});
  EXPECT_TRUE(gaps[1].wraps);
  EXPECT_EQ(idle_time(gaps[1], starts), Nanos{0});
}

TEST(CandidateGaps, AreThoseOfLargeTensorsBetweenDeviceAccesses) {
  const SwapExample e;
  EXPECT_THAT(candidate_gaps(e.program, e.index, testing::mib(4)),
              ElementsAre(testing::kX, testing::kY, testing::kZ));
  EXPECT_EQ(candidate_gaps(e.program, e.index, 0).size(), e.index.gaps().size());
  const Program tiny = testing::tiny_training();
  const AccessIndex index(tiny);
  for (const GapId g : candidate_gaps(tiny, index, 0)) {
    EXPECT_EQ(index.gaps()[static_cast<std::size_t>(g)].kind, GapKind::device);
  }
}

/// Two MiB a millisecond: z's copies take 32 ms, its gap 10; y's take 16, its gap 30.
TEST(LongEnough, WantsTimeForHalfOfTheCopies) {
  const SwapExample e;
  const Machine machine = testing::two_mib_a_ms();
  const auto starts = unstalled_starts(e.program, std::vector<std::int32_t>(6, 0));
  EXPECT_TRUE(long_enough(e.index.gaps()[testing::kY], e.program, machine, starts));
  EXPECT_FALSE(long_enough(e.index.gaps()[testing::kZ], e.program, machine, starts));
}

}  // namespace
}  // namespace tidepool
