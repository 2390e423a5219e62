#include "pack/holds.h"

#include <gtest/gtest.h>

#include <limits>

#include "pack/search.h"
#include "pack/validate.h"
#include "pack_problems.h"

namespace tidepool {
namespace {

/// Of one kind, all of whose begins are told of an end at the same time.
Hold held(std::int32_t begin, std::int32_t end, std::int32_t cycle) {
  Hold hold;
  hold.begin = begin;
  hold.until.fill(end);
  hold.until_next.fill(std::max(0, end - cycle));
  return hold;
}

TEST(Holds, ConflictWhileTheyAreHeldAndOverTheEndOfTheCycle) {
  EXPECT_TRUE(conflict(held(0, 3, 10), held(2, 5, 10)));
  EXPECT_FALSE(conflict(held(0, 3, 10), held(3, 5, 10)));
  EXPECT_TRUE(conflict(held(8, 12, 10), held(1, 3, 10)));
  EXPECT_FALSE(conflict(held(8, 12, 10), held(2, 3, 10)));
  EXPECT_TRUE(conflict(Hold::for_ever(), held(4, 5, 10)));
  EXPECT_TRUE(conflict(held(4, 5, 10), held(4, 5, 10)));
}

TEST(Holds, HaveNoGraphWhereItIsStopped) {
  PackProblem p;
  p.sizes = {64, 64};
  p.starts = {0, 2};
  p.holds = {held(0, 3, 10), held(2, 5, 10)};
  EXPECT_FALSE(hold_graph(p, [] { return true; }));
  EXPECT_TRUE(hold_graph(p, [] { return false; }));
}

TEST(Holds, AreNotPackedForWhoHasAPackingAndStops) {
  PackProblem p;
  p.sizes = {64, 64};
  p.starts = {0, 2};
  p.holds = {held(0, 3, 10), held(2, 5, 10)};
  SearchOptions options;
  options.stop = [] { return true; };
  EXPECT_EQ(search_packing(p, options).packing.footprint, 128);
  options.may_have_none = true;
  EXPECT_EQ(search_packing(p, options).packing.footprint, std::numeric_limits<Bytes>::max());
}

TEST(Holds, EachKindHasAnEndOfItsOwn) {
  Hold a = held(0, 3, 10);
  a.until[1] = 6;
  Hold b = held(4, 5, 10);
  EXPECT_FALSE(conflict(a, b));
  b.kind = 1;
  EXPECT_TRUE(conflict(a, b));
  EXPECT_TRUE(conflict(b, a));
}

TEST(Holds, TheGraphHasThePairsThatConflict) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const PackProblem p = testing::random_holds(seed, 60, 50, 30, 9);
    const PackProblem graph = hold_graph(p);
    std::int64_t entries = 0;
    for (std::size_t i = 0; i < p.sizes.size(); ++i) {
      std::vector<std::int32_t> expected;
      for (std::size_t j = 0; j < p.sizes.size(); ++j) {
        if (i != j && conflict(p.holds[i], p.holds[j])) {
          expected.push_back(static_cast<std::int32_t>(j));
        }
      }
      const auto found = graph.conflicts(i);
      ASSERT_EQ(std::vector<std::int32_t>(found.begin(), found.end()), expected) << seed;
      entries += std::ssize(expected);
    }
    EXPECT_GE(most_conflicts(p.holds) * 2, entries);
    EXPECT_LE(most_conflicts(p.holds), entries);
  }
}

TEST(Holds, WhatIsHeldAtOnceIsACliqueOfTheGraph) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const PackProblem p = testing::random_holds(seed, 40, 60, 20, 9);
    const PackProblem graph = hold_graph(p);
    for (const Packer& packer : packers()) {
      EXPECT_LE(held_at_once(p), packer.pack(graph).footprint) << seed;
    }
  }
  PackProblem ring;
  ring.sizes = {5, 7, 11, 13};
  ring.holds = {held(0, 4, 10), held(3, 8, 10), held(7, 12, 10), Hold::for_ever()};
  EXPECT_EQ(held_at_once(ring), 13 + 18);
}

TEST(Holds, ValidateFindsWhatConflictsAndOverlaps) {
  PackProblem p;
  p.sizes = {4, 4, 4};
  p.starts = {0, 3, 8};
  p.holds = {held(0, 3, 10), held(3, 5, 10), held(8, 12, 10)};
  EXPECT_TRUE(validate(p, {{0, 0, 4}, 8}));
  EXPECT_TRUE(validate(p, {{4, 0, 0}, 8}));
  EXPECT_FALSE(validate(p, {{0, 0, 0}, 4}));  // the last is there when the first begins
  EXPECT_FALSE(validate(p, {{0, 0, 3}, 7}));
  p.holds[1] = held(2, 5, 10);
  EXPECT_FALSE(validate(p, {{0, 0, 4}, 8}));
}

}  // namespace
}  // namespace tidepool
