#include "support/planned_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "support/recording_builder.h"

namespace tidepool {
namespace {

using ::testing::Optional;
using testing::RandomTraining;

/// Offsets by first fit in the order of the list.
std::vector<Bytes> packed(const std::vector<CyclicLifetime>& lives, std::int32_t cycle) {
  std::vector<Bytes> offsets;
  for (std::size_t i = 0; i < lives.size(); ++i) {
    std::vector<std::pair<Bytes, Bytes>> taken;
    for (std::size_t j = 0; j < i; ++j) {
      if (overlap(lives[i], lives[j], cycle)) {
        taken.emplace_back(offsets[j], offsets[j] + lives[j].bytes);
      }
    }
    std::sort(taken.begin(), taken.end());
    Bytes offset = 0;
    for (const auto& [from, to] : taken) {
      if (offset + lives[i].bytes <= from) break;
      offset = std::max(offset, to);
    }
    offsets.push_back(offset);
  }
  return offsets;
}

TEST(PlannedPool, BlocksLiveOnIntoTheNextCycle) {
  // A weight always; one block over events 0 to 3; one from 4 to event 2 of the next cycle.
  const std::vector<CyclicLifetime> lives{{8, 0, 5}, {16, 0, 3}, {32, 4, 7}};
  PlannedPool pool(lives, std::vector<Bytes>{0, 8, 24}, 5);
  EXPECT_EQ(pool.bytes(), 56);
  ASSERT_EQ(pool.live_at_start().size(), 2U);
  EXPECT_EQ(pool.live_at_start()[0].offset, 0);
  EXPECT_EQ(pool.live_at_start()[1].offset, 24);
  EXPECT_EQ(pool.live_at_start()[1].bytes, 32);
  for (int cycle = 0; cycle < 3; ++cycle) {
    EXPECT_THAT(pool.malloc(16), Optional(8));
    EXPECT_TRUE(pool.free(24));
    EXPECT_TRUE(pool.free(8));
    EXPECT_THAT(pool.malloc(32), Optional(24));
  }
}

TEST(PlannedPool, AMallocIsServedByItsPosition) {
  const std::vector<CyclicLifetime> lives{{16, 0, 3}, {16, 1, 4}};
  PlannedPool pool(lives, std::vector<Bytes>{16, 0}, 5);
  for (int cycle = 0; cycle < 3; ++cycle) {
    EXPECT_TRUE(pool.at_start());
    EXPECT_THAT(pool.malloc(16), Optional(16));
    EXPECT_THAT(pool.malloc(16), Optional(0));
    EXPECT_TRUE(pool.free(16));
    EXPECT_TRUE(pool.free(0));
  }
}

TEST(PlannedPool, WhatIsNotPlannedIsRefusedAndChangesNothing) {
  const std::vector<CyclicLifetime> lives{{16, 0, 3}, {32, 1, 4}};
  PlannedPool pool(lives, std::vector<Bytes>{32, 0}, 5);
  EXPECT_EQ(pool.malloc(32), std::nullopt) << "the next one's size";
  EXPECT_FALSE(pool.free(32)) << "a malloc is next";
  EXPECT_THAT(pool.malloc(16), Optional(32));
  EXPECT_EQ(pool.malloc(1), std::nullopt);
  EXPECT_THAT(pool.malloc(32), Optional(0));
  EXPECT_FALSE(pool.free(0)) << "the other one is freed first";
  EXPECT_EQ(pool.malloc(32), std::nullopt) << "a free is next";
  EXPECT_TRUE(pool.free(32));
  EXPECT_FALSE(pool.at_start());
  pool.begin_cycle();
  EXPECT_THAT(pool.malloc(16), Optional(32));
}

TEST(PlannedPool, WithoutAPlannedMallocEverythingIsRefused) {
  const std::vector<CyclicLifetime> lives{{8, 0, 5}};
  PlannedPool pool(lives, std::vector<Bytes>{0}, 5);
  EXPECT_EQ(pool.malloc(8), std::nullopt);
  EXPECT_FALSE(pool.free(0));
  EXPECT_FALSE(pool.free(-1));
  EXPECT_EQ(pool.live_at_start().size(), 1U);
}

/// Live ranges by offset; fails when two overlap.
class Ranges {
 public:
  void add(Bytes offset, Bytes bytes) {
    const auto next = live_.lower_bound(offset);
    if (next != live_.end()) {
      EXPECT_LE(offset + bytes, next->first);
    }
    if (next != live_.begin()) {
      EXPECT_LE(std::prev(next)->first + std::prev(next)->second, offset);
    }
    live_[offset] = bytes;
  }
  void remove(Bytes offset) { EXPECT_EQ(live_.erase(offset), 1U); }
  [[nodiscard]] std::size_t size() const { return live_.size(); }

 private:
  std::map<Bytes, Bytes> live_;
};

TEST(PlannedPool, ServesRecordedTrainings) {
  int served = 0;
  int unknown = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    RandomTraining training(seed);
    for (int i = 0; i < 9; ++i) training.iteration();
    const Recording& recording = training.tape.recording();
    const auto iteration = find_iteration(recording);
    ASSERT_TRUE(iteration);
    const BlockLives block_lives = find_block_lives(recording, *iteration);
    const auto lives = lifetimes_to_serve(recording, *iteration, block_lives);
    if (!lives) {
      ++unknown;
      continue;
    }
    const auto cycle = static_cast<std::int32_t>(2 * iteration->period);
    const std::vector<Bytes> offsets = packed(*lives, cycle);
    PlannedPool pool(*lives, offsets, cycle);
    Ranges live;
    for (const PlannedPool::Block& b : pool.live_at_start()) live.add(b.offset, b.bytes);
    const std::size_t at_start = live.size();
    std::map<BlockId, Bytes> where;
    const auto cycles = iteration->repeats / 2;
    for (std::int64_t e = 0; e < cycles * cycle; ++e) {
      const TraceEvent& event = recording.events[static_cast<std::size_t>(iteration->start + e)];
      const Bytes bytes = recording.blocks[static_cast<std::size_t>(event.block)].bytes;
      if (event.kind == EventKind::malloc) {
        const auto offset = pool.malloc(bytes);
        ASSERT_TRUE(offset);
        EXPECT_LE(*offset + bytes, pool.bytes());
        live.add(*offset, bytes);
        where[event.block] = *offset;
      } else if (event.kind == EventKind::free) {
        // What was allocated before lies where the plan wants it.
        if (!where.contains(event.block)) {
          for (std::size_t i = 0; i < lives->size(); ++i) {
            if ((*lives)[i].end == e + cycle) where[event.block] = offsets[i];
          }
        }
        ASSERT_TRUE(where.contains(event.block));
        ASSERT_TRUE(pool.free(where[event.block]));
        live.remove(where[event.block]);
      }
    }
    EXPECT_TRUE(pool.at_start());
    EXPECT_EQ(live.size(), at_start);
    ++served;
  }
  EXPECT_GT(served, 10);
  EXPECT_GT(unknown, 0) << "blocks that live through whole iterations";
}

}  // namespace
}  // namespace tidepool
