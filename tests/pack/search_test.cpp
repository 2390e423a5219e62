#include "pack/search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "base/file.h"
#include "pack/branch_and_bound.h"
#include "pack/cliques.h"
#include "pack/ejection_search.h"
#include "pack/pack_csv.h"
#include "pack/squeaky_wheel.h"
#include "pack/sweep.h"
#include "pack/validate.h"
#include "pack_problems.h"

namespace tidepool {
namespace {

const Stop kNever;
constexpr std::int64_t kAllNodes = std::int64_t{1} << 40;

SearchOptions some_rounds(int rounds) {
  SearchOptions options;
  options.time_limit = from_seconds(3600);
  options.rounds = rounds;
  return options;
}

Bytes best_greedy(const PackProblem& p) {
  Bytes best = packers()[0].pack(p).footprint;
  for (const Packer& packer : packers()) best = std::min(best, packer.pack(p).footprint);
  return best;
}

/// First fit in every order finds an optimal packing in one of them.
Bytes smallest_of_all_orders(const PackProblem& p) {
  std::vector<std::int32_t> order(p.sizes.size());
  std::iota(order.begin(), order.end(), 0);
  Bytes best = place_in_order(p, order, false).footprint;
  while (std::next_permutation(order.begin(), order.end())) {
    best = std::min(best, place_in_order(p, order, false).footprint);
  }
  return best;
}

TEST(BranchAndBound, IsRightAboutWhatIsPossibleAndWhatIsNot) {
  int gaps = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    for (const PackProblem& form :
         {testing::random_lifetimes(seed, 7, 8, 6), testing::random_graph(seed, 7, 3)}) {
      const Bytes least = smallest_of_all_orders(form);
      gaps += least > clique_bound(form) ? 1 : 0;
      BranchAndBound exact(form);
      for (const auto key : {BranchOrder::Key::load, BranchOrder::Key::failures}) {
        const BranchOrder order{{key, BranchOrder::Key::area, BranchOrder::Key::size}, seed};
        EXPECT_EQ(exact.fit(least - 1, order, kAllNodes, kNever), Answer::impossible);
        ASSERT_EQ(exact.fit(least, order, kAllNodes, kNever), Answer::found);
        EXPECT_TRUE(validate(form, exact.packing()));
        EXPECT_LE(exact.packing().footprint, least);
      }
    }
  }
  EXPECT_GT(gaps, 0) << "some of these problems should not reach their bound";
}

TEST(BranchAndBound, GivesUpWhenToldTo) {
  const PackProblem p = testing::random_lifetimes(1, 60, 30, 50);
  BranchAndBound exact(p);
  EXPECT_EQ(exact.fit(peak_load(p), {}, 1, kNever), Answer::gave_up);
}

TEST(SqueakyWheel, KeepsTheBestPackingAndIsDeterministic) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const PackProblem p = testing::random_lifetimes(seed, 50, 30, 40);
    const Packing start = packers()[0].pack(p);
    std::vector<Packing> results(2, start);
    for (Packing& best : results) {
      auto order = by_size_descending(p);
      const bool better = squeak(p, order, peak_load(p), seed, 20, kNever, best);
      EXPECT_EQ(better, best.footprint < start.footprint);
      EXPECT_TRUE(validate(p, best));
    }
    EXPECT_EQ(results[0].offsets, results[1].offsets);
  }
}

TEST(EjectionSearch, WhatItFindsIsValidAndFixedBuffersStay) {
  int found = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    PackProblem p = testing::random_lifetimes(seed, 40, 20, 30);
    p.fixed.assign(p.sizes.size(), -1);
    if (seed % 2 == 1) p.fixed[3] = 5;
    const Packing start = packers()[0].pack(p);
    EjectionSearch ejection(p);
    if (!ejection.fit(start.footprint - 1, start, seed, 5000, kNever)) continue;
    ++found;
    EXPECT_TRUE(validate(p, ejection.packing()));
    EXPECT_LT(ejection.packing().footprint, start.footprint);
  }
  EXPECT_GT(found, 10);
}

TEST(Search, IsNeverWorseThanGreedyAndProvesOnlyWhatIsTrue) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    const PackProblem p = testing::random_lifetimes(seed, 7, 8, 6);
    for (const PackProblem& form : {p, with_conflict_graph(p)}) {
      const SearchResult r = search_packing(form, some_rounds(8));
      EXPECT_TRUE(validate(form, r.packing));
      EXPECT_LE(r.packing.footprint, best_greedy(form));
      EXPECT_TRUE(r.proven_optimal);
      EXPECT_EQ(r.packing.footprint, smallest_of_all_orders(form));
    }
  }
}

TEST(Search, RepeatsItselfForASeedAndRounds) {
  const PackProblem p = testing::random_lifetimes(3, 80, 60, 1000);
  const SearchResult a = search_packing(p, some_rounds(2));
  const SearchResult b = search_packing(p, some_rounds(2));
  EXPECT_EQ(a.packing.offsets, b.packing.offsets);
  EXPECT_EQ(a.found_by, b.found_by);
}

TEST(Search, HonoursFixedBuffersAndCyclicLifetimes) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    // A graph that is no interval graph: 2 conflicts with 3 for another reason.
    PackProblem p = with_conflict_graph(testing::random_lifetimes(seed, 30, 25, 20));
    p.fixed.assign(p.sizes.size(), -1);
    p.fixed[seed % 30] = 17;
    const SearchResult r = search_packing(p, some_rounds(2));
    EXPECT_TRUE(validate(p, r.packing));
    EXPECT_LE(r.packing.footprint, best_greedy(p));
    EXPECT_EQ(r.proven_optimal, r.packing.footprint == r.lower_bound);
  }
}

TEST(Search, OfNothingIsDone) {
  const SearchResult r = search_packing(lifetime_problem({}, {}), some_rounds(1));
  EXPECT_EQ(r.packing.footprint, 0);
  EXPECT_TRUE(r.proven_optimal);
}

TEST(Search, WhenCancelledReturnsAValidPacking) {
  const PackProblem p = testing::random_lifetimes(5, 200, 100, 1000);
  SearchOptions options = some_rounds(100);
  int asked = 0;
  options.stop = [&] { return ++asked > 20; };
  const SearchResult r = search_packing(p, options);
  EXPECT_TRUE(validate(p, r.packing));
}

// 200,000 buffers took 20 s where 1 s was allowed. No clock is asked: without any time an order
// that is quadratic in the buffers is not made to its end.
TEST(Search, WithoutAnyTimeMakesOneQuickPackingAndProvesWhatItMay) {
  const PackProblem p = testing::random_lifetimes(5, 50'000, 250'000, 1000);
  SearchOptions options;
  options.time_limit = Nanos{0};
  const SearchResult r = search_packing(p, options);
  EXPECT_TRUE(validate(p, r.packing));
  EXPECT_EQ(r.found_by, "sweep");
  EXPECT_EQ(r.lower_bound, peak_load(p));
  EXPECT_EQ(r.proven_optimal, r.packing.footprint == r.lower_bound);
}

TEST(Search, WithoutAnyTimeMakesTheFirstOrderOfAConflictGraphAndNoOther) {
  const PackProblem p = with_conflict_graph(testing::random_lifetimes(5, 300, 100, 1000));
  SearchOptions options;
  options.time_limit = Nanos{0};
  const SearchResult r = search_packing(p, options);
  EXPECT_TRUE(validate(p, r.packing));
  EXPECT_EQ(r.found_by, packers().front().name);
  EXPECT_EQ(r.packing.offsets, packers().front().pack(p).offsets);
}

TEST(PackBySweep, IsValidAndAtMostTwiceTheLoadOnRandomLifetimes) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const PackProblem p = testing::random_lifetimes(seed, 1 + seed, 50, 1000);
    const Packing packing = pack_by_sweep(p);
    ASSERT_TRUE(validate(p, packing)) << seed;
    EXPECT_LE(packing.footprint, 2 * peak_load(p)) << seed;
  }
}

TEST(PlaceInOrder, StoppedMidwaySaysThatItIsUnfinished) {
  PackProblem p = testing::random_lifetimes(1, 500, 100, 1000);
  int asked = 0;
  p.stop = [&] { return ++asked == 3; };
  EXPECT_EQ(packers().front().pack(p).footprint, std::numeric_limits<Bytes>::max());
  EXPECT_EQ(asked, 3);
}

TEST(Search, ReachesTheLowerBoundOfPublishedProblems) {
  const std::string folder = TIDEPOOL_SOURCE_FOLDER "/../shared/data/packing/";
  const auto path = [&](const char* name) { return folder + name; };
  if (!std::filesystem::exists(path("C.1048576.csv"))) {
    GTEST_SKIP() << "needs the packing files in " << folder;
  }
  for (const auto& [name, bound] :
       {std::pair("input.12.csv", 12), std::pair("C.1048576.csv", 1039360),
        std::pair("K.1048576.csv", 1048576)}) {
    const auto text = read_file(path(name));
    ASSERT_TRUE(text);
    const auto file = read_pack_csv(*text, name);
    ASSERT_TRUE(file) << file.error().message;
    const SearchResult r = search_packing(file->problem, some_rounds(2));
    EXPECT_EQ(r.lower_bound, bound);
    EXPECT_TRUE(r.proven_optimal) << name << ": " << r.packing.footprint;
    EXPECT_TRUE(validate(file->problem, r.packing));
  }
}

TEST(SearchPacking, WhatConflictsWithEverythingTakesNothingButItsOwnBytes) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    for (PackProblem p :
         {testing::random_lifetimes(seed, 7, 8, 6), testing::random_graph(seed, 7, 6)}) {
      const Bytes alone = search_packing(p, some_rounds(8)).packing.footprint;
      // Two more buffers, in the middle of the list.
      PackProblem more;
      const std::vector<std::int32_t> place{0, 1, 2, 5, 6, 7, 8};
      more.sizes.assign(9, 5);
      more.starts.assign(9, 0);
      for (std::size_t i = 0; i < 7; ++i) {
        more.sizes[static_cast<std::size_t>(place[i])] = p.sizes[i];
        more.starts[static_cast<std::size_t>(place[i])] = p.starts[i];
      }
      if (!p.lifetimes.empty()) {
        more.lifetimes.assign(9, {-1, 100});
        for (std::size_t i = 0; i < 7; ++i) {
          more.lifetimes[static_cast<std::size_t>(place[i])] = p.lifetimes[i];
        }
      } else {
        std::vector<std::vector<std::int32_t>> lists(9);
        for (std::int32_t all : {3, 4}) {
          for (std::int32_t other = 0; other < 9; ++other) {
            if (other != all) lists[static_cast<std::size_t>(all)].push_back(other);
            if (other != 3 && other != 4) lists[static_cast<std::size_t>(other)].push_back(all);
          }
        }
        for (std::size_t i = 0; i < 7; ++i) {
          for (const std::int32_t other : p.conflicts(i)) {
            lists[static_cast<std::size_t>(place[i])].push_back(
                place[static_cast<std::size_t>(other)]);
          }
        }
        for (auto& list : lists) {
          std::sort(list.begin(), list.end());
          more.neighbour_start.push_back(static_cast<std::int32_t>(more.neighbours.size()));
          more.neighbours.insert(more.neighbours.end(), list.begin(), list.end());
        }
        more.neighbour_start.push_back(static_cast<std::int32_t>(more.neighbours.size()));
      }
      const SearchResult r = search_packing(more, some_rounds(8));
      EXPECT_TRUE(validate(more, r.packing));
      EXPECT_EQ(r.packing.footprint, alone + 10);
      EXPECT_TRUE(r.proven_optimal);
    }
  }
}

TEST(SearchPacking, WithATargetStaysInMultiplesOfTheSizesUnit) {
  constexpr Bytes kUnit = 512;
  int reached = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    PackProblem p = testing::random_lifetimes(seed, 120, 60, 40);
    for (Bytes& size : p.sizes) size *= kUnit;
    SearchOptions options = some_rounds(1);
    const Bytes best = search_packing(p, options).packing.footprint;
    options.target = best + 3 * kUnit + 17;
    const SearchResult r = search_packing(p, options);
    EXPECT_TRUE(validate(p, r.packing));
    for (const Bytes offset : r.packing.offsets) EXPECT_EQ(offset % kUnit, 0);
    reached += r.packing.footprint <= options.target ? 1 : 0;
  }
  EXPECT_GT(reached, 10);
}

}  // namespace
}  // namespace tidepool
