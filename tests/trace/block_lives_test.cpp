#include "trace/block_lives.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "support/recording_builder.h"

namespace tidepool {
namespace {

using testing::RandomTraining;
using testing::RecordingBuilder;

/// Each iteration: malloc a, write, malloc g, write, free the g before last one, read w, free a.
struct TwoGenerations {
  RecordingBuilder b;
  BlockId w = b.block(1000);
  BlockId untouched = b.block(50);
  std::vector<BlockId> g;

  TwoGenerations() {
    b.recording().resident = 7;
    b.read(untouched);
    g.push_back(b.block(20));
    for (int i = 0; i < 4; ++i) {
      const BlockId a = b.malloc(3);
      b.write(a);
      g.push_back(b.malloc(20));
      b.write(g.back());
      const BlockId old = g[g.size() - 2];
      b.write(old).free(old);
      b.read(w).read(g.back()).free(a);
    }
  }
};

TEST(BlockLives, BlocksOfTwoGenerationsAreJoined) {
  TwoGenerations t;
  const auto iteration = find_iteration(t.b.recording());
  ASSERT_TRUE(iteration);
  EXPECT_EQ(iteration->start, 1);
  EXPECT_EQ(iteration->period, 9);
  const BlockLives block_lives = find_block_lives(t.b.recording(), *iteration);
  ASSERT_EQ(block_lives.all.size(), 4U);
  const BlockLife& young = block_lives.all[1];
  const BlockLife& old = block_lives.all[2];
  EXPECT_EQ(young.malloc_at, 2);
  EXPECT_EQ(young.free_at, kNone);
  EXPECT_EQ(young.rest, 2);
  EXPECT_EQ(old.malloc_at, kNone);
  EXPECT_EQ(old.free_at, 5);
  EXPECT_EQ(old.first_access, 4);
  EXPECT_EQ(block_lives.resident, 57) << "the recording's, and the block only accessed before";
  EXPECT_EQ(block_lives.peak, 7 + 50 + 1000 + 3 + 20 + 20);
}

TEST(BlockLives, LifetimesOfTwoGenerations) {
  TwoGenerations t;
  const auto iteration = find_iteration(t.b.recording());
  ASSERT_TRUE(iteration);
  const auto lives =
      cyclic_lifetimes(t.b.recording(), *iteration, find_block_lives(t.b.recording(), *iteration));
  const auto is = [](Bytes bytes, int begin, int end) {
    return ::testing::AllOf(::testing::Field(&CyclicLifetime::bytes, bytes),
                            ::testing::Field(&CyclicLifetime::begin, begin),
                            ::testing::Field(&CyclicLifetime::end, end));
  };
  EXPECT_THAT(lives, ::testing::UnorderedElementsAre(is(57, 0, 9), is(1000, 0, 9), is(3, 0, 8),
                                                     is(20, 0, 9), is(20, 2, 5)));
  EXPECT_THAT(moved_blocks(t.b.recording(), find_block_lives(t.b.recording(), *iteration)),
              ::testing::ElementsAre(20));
}

TEST(BlockLives, InTwoIterationsNothingMoves) {
  TwoGenerations t;
  const auto iteration = find_iteration(t.b.recording());
  ASSERT_TRUE(iteration);
  const auto lives = lifetimes_of_two_iterations(t.b.recording(), *iteration,
                                                 find_block_lives(t.b.recording(), *iteration));
  std::vector<std::pair<int, int>> generations;
  for (const CyclicLifetime& life : lives) {
    if (life.bytes == 20) generations.emplace_back(life.begin, life.end);
  }
  EXPECT_THAT(generations, ::testing::ElementsAre(std::pair(2, 14), std::pair(11, 23)));
  EXPECT_EQ(lives.size(), 6U) << "and resident bytes, w, twice a";
}

TEST(BlockLives, OverlapIsCyclic) {
  const CyclicLifetime wraps{1, 8, 12};
  EXPECT_TRUE(overlap(wraps, {1, 0, 1}, 10));
  EXPECT_TRUE(overlap({1, 1, 2}, wraps, 10));
  EXPECT_FALSE(overlap(wraps, {1, 2, 8}, 10));
  EXPECT_TRUE(overlap({1, 0, 10}, wraps, 10));
  EXPECT_FALSE(overlap({1, 0, 3}, {1, 3, 5}, 10));
}

/// Whatever lives on in whatever way, the lifetimes add up to the recorded load.
TEST(BlockLives, LifetimesAddUpToTheLoadOfRandomTrainings) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    RandomTraining training(seed);
    for (int i = 0; i < 7; ++i) training.iteration();
    const Recording& recording = training.tape.recording();
    const auto iteration = find_iteration(recording);
    ASSERT_TRUE(iteration);
    const BlockLives block_lives = find_block_lives(recording, *iteration);
    const auto period = static_cast<std::int32_t>(iteration->period);
    const auto peak = [](const std::vector<CyclicLifetime>& lives, std::int32_t cycle) {
      std::vector<Bytes> load(static_cast<std::size_t>(cycle), 0);
      for (const CyclicLifetime& life : lives) {
        EXPECT_LE(life.end - life.begin, cycle);
        for (std::int32_t i = life.begin; i < life.end; ++i) {
          load[static_cast<std::size_t>(i % cycle)] += life.bytes;
        }
      }
      return *std::max_element(load.begin(), load.end());
    };
    EXPECT_EQ(peak(cyclic_lifetimes(recording, *iteration, block_lives), period), block_lives.peak);
    EXPECT_EQ(peak(lifetimes_of_two_iterations(recording, *iteration, block_lives), 2 * period),
              block_lives.peak);
  }
}

}  // namespace
}  // namespace tidepool
