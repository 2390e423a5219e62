#include "session/fixed_pool.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/at.h"
#include "base/random.h"
#include "support/recording_builder.h"

namespace tidepool::testing {
namespace {

/// Each block holds its number all over; a block that another one overwrites is seen at its free.
class Stamped {
 public:
  explicit Stamped(FixedPool& pool) : pool_(pool) {}
  void* allocate(Bytes bytes) {
    void* const address = pool_.allocate(bytes);
    EXPECT_NE(address, nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(address) % 64, 0U);
    std::memset(address, ++number_ % 251, static_cast<std::size_t>(bytes));
    blocks_[address] = {bytes, number_ % 251};
    return address;
  }
  void free(void* address) {
    const auto [bytes, stamp] = blocks_.at(address);
    const auto* const begin = static_cast<const unsigned char*>(address);
    EXPECT_TRUE(std::all_of(begin, begin + bytes, [&](unsigned char c) { return c == stamp; }));
    blocks_.erase(address);
    EXPECT_TRUE(pool_.free(address));
  }

 private:
  FixedPool& pool_;
  std::map<void*, std::pair<Bytes, int>> blocks_;
  int number_ = 0;
};

/// Forwards and backwards over layers of different sizes.
void training_iteration(Stamped& blocks, int layers, int skip = -1) {
  std::vector<void*> x;
  for (int i = 0; i < layers; ++i) {
    if (i == skip) continue;
    x.push_back(blocks.allocate(1000 + 37'000 * (i % 5 + 1)));
    void* const scratch = blocks.allocate(90'000 - 1'000 * i);
    blocks.free(scratch);
  }
  void* gradient = blocks.allocate(50'000);
  while (!x.empty()) {
    void* const next = blocks.allocate(40'000 + 100 * static_cast<Bytes>(x.size()));
    blocks.free(gradient);
    blocks.free(x.back());
    x.pop_back();
    gradient = next;
  }
  blocks.free(gradient);
}

TEST(FixedPool, ServesAnIterationByLookUpInAsFewBytesAsItHasAtOnce) {
  FixedPool pool({.budget = 64 * kMiB});
  Stamped blocks(pool);
  std::vector<void*> weights;
  for (int i = 0; i < 8; ++i) weights.push_back(blocks.allocate(10'000 + i));
  for (int i = 0; i < 8; ++i) training_iteration(blocks, 12);
  EXPECT_GE(pool.report().iterations, 2);
  pool.reset_peaks();
  const FixedPoolReport before = pool.report();
  for (int i = 0; i < 5; ++i) training_iteration(blocks, 12);
  const FixedPoolReport after = pool.report();
  EXPECT_EQ(after.iterations, before.iterations + 5);
  EXPECT_EQ(after.others, before.others);
  EXPECT_EQ(after.iteration_mallocs, 12 * 2 + 13);
  // Sizes are rounded to 64 B, and the whole to a page.
  EXPECT_LE(after.footprint, after.peak_load * 101 / 100 + 8192);
  for (void* const w : weights) blocks.free(w);
}

TEST(FixedPool, WhatIsNotPlannedIsServedElsewhereAndThePlanTakenUpAgain) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Random random(seed);
    FixedPool pool({.budget = 64 * kMiB});
    Stamped blocks(pool);
    std::vector<void*> kept;
    for (int i = 0; i < 40; ++i) {
      const bool odd = i > 8 && i < 30 && random.below(3) == 0;
      training_iteration(blocks, 10, odd ? static_cast<int>(random.below(10)) : -1);
      if (odd && random.below(2) == 0) kept.push_back(blocks.allocate(12'345));
      if (!kept.empty() && random.below(4) == 0) {
        blocks.free(kept.back());
        kept.pop_back();
      }
    }
    const auto planned = pool.report().iterations;
    for (int i = 0; i < 5; ++i) training_iteration(blocks, 10);
    EXPECT_EQ(pool.report().iterations, planned + 5) << seed;
    for (void* const address : kept) blocks.free(address);
  }
}

/// Weights, blocks of one iteration and of several, from anywhere in an iteration.
TEST(FixedPool, ServesRecordedTrainings) {
  int planned = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    RandomTraining training(seed);
    for (int i = 0; i < 24; ++i) training.iteration();
    const Recording& recording = training.tape.recording();
    FixedPool pool({.budget = 64 * kMiB, .time_limit = std::chrono::milliseconds(10)});
    Stamped blocks(pool);
    std::map<BlockId, void*> where;
    for (const TraceEvent& event : recording.events) {
      if (event.kind == EventKind::malloc) {
        where[event.block] = blocks.allocate(recording.blocks[at(event.block)].bytes);
      } else if (event.kind == EventKind::free) {
        blocks.free(where.at(event.block));
      }
    }
    if (pool.report().iterations > 0) ++planned;
  }
  EXPECT_GT(planned, 30);
}

/// Of the pool's address space, which begins at `begin`.
Bytes resident(const void* begin, Bytes bytes) {
  const Bytes page = ::sysconf(_SC_PAGESIZE);
  std::vector<unsigned char> in_memory(static_cast<std::size_t>(bytes / page));
  EXPECT_EQ(::mincore(const_cast<void*>(begin), static_cast<std::size_t>(bytes), in_memory.data()),
            0);
  return page * std::ranges::count_if(in_memory, [](unsigned char c) { return (c & 1) != 0; });
}

TEST(FixedPool, TakesNoMoreMemoryThanTheBudgetWhereAPlanIsLeft) {
  constexpr Bytes kBudget = 4 * kMiB, kBlock = 64 * kKiB, kSmall = 1 * kKiB;
  for (const bool in_the_middle : {false, true}) {
    FixedPool pool({.budget = kBudget});
    Stamped blocks(pool);
    void* const begin = blocks.allocate(kSmall);
    const auto taken = [&] { return resident(begin, 2 * kBudget); };
    const auto iteration = [&] {
      void* const a = blocks.allocate(20 * kBlock);
      void* const b = blocks.allocate(12 * kBlock);
      blocks.free(a);
      void* const c = blocks.allocate(16 * kBlock);
      blocks.free(b);
      blocks.free(c);
    };
    for (int round = 0; round < 3; ++round) {
      SCOPED_TRACE(round);
      const auto before = pool.report().iterations;
      for (int i = 0; i < 30; ++i) iteration();
      EXPECT_GT(pool.report().iterations, before);
      EXPECT_GE(taken(), 32 * kBlock);
      void* const held = in_the_middle ? blocks.allocate(20 * kBlock) : nullptr;
      // Small ones, and others in the place of those that were freed.
      std::vector<void*> small, large;
      for (int i = 0; i < 1024; ++i) small.push_back(blocks.allocate(kSmall));
      for (void* const block : small) blocks.free(block);
      EXPECT_LE(taken(), kBudget);
      while (void* const block = pool.allocate(kBlock)) {
        std::memset(block, 1, static_cast<std::size_t>(kBlock));
        large.push_back(block);
      }
      EXPECT_LE(taken(), kBudget);
      if (in_the_middle) blocks.free(held);
      EXPECT_LE(taken(), kBudget);
      while (void* const block = pool.allocate(kBlock)) {
        std::memset(block, 1, static_cast<std::size_t>(kBlock));
        large.push_back(block);
      }
      EXPECT_GE(static_cast<Bytes>(large.size()) * kBlock, kBudget - 2 * kBlock);
      EXPECT_LE(taken(), kBudget);
      EXPECT_LE(pool.report().footprint, kBudget);
      for (void* const block : large) EXPECT_TRUE(pool.free(block));
    }
    blocks.free(begin);
  }
}

TEST(FixedPool, KeepsABudgetThatIsNoMultipleOfAPage) {
  FixedPool few({.budget = 100});
  EXPECT_NE(few.allocate(64), nullptr);
  EXPECT_EQ(few.allocate(64), nullptr);
  FixedPool pool({.budget = 66'000});
  EXPECT_EQ(pool.allocate(69'632), nullptr);
  Stamped blocks(pool);
  for (int i = 0; i < 40; ++i) {
    void* const a = blocks.allocate(20'000);
    void* const b = blocks.allocate(30'000);
    blocks.free(a);
    blocks.free(b);
  }
  EXPECT_GT(pool.report().iterations, 0);
  EXPECT_LE(pool.report().footprint, 66'000);
}

TEST(FixedPool, RefusesWhatItHasNoRoomForAndWhatIsNoBlock) {
  FixedPool pool({.budget = 1 * kMiB});
  EXPECT_EQ(pool.allocate(2 * kMiB), nullptr);
  EXPECT_EQ(pool.allocate(0), nullptr);
  void* const a = pool.allocate(600'000);
  EXPECT_NE(a, nullptr);
  EXPECT_EQ(pool.allocate(600'000), nullptr);
  EXPECT_FALSE(pool.free(static_cast<std::byte*>(a) + 64));
  EXPECT_TRUE(pool.free(a));
  EXPECT_FALSE(pool.free(a));
}

}  // namespace
}  // namespace tidepool::testing
