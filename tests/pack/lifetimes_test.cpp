#include "pack/lifetimes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pack/cliques.h"
#include "pack/conflict_index.h"
#include "pack/validate.h"
#include "pack_problems.h"

namespace tidepool {
namespace {

TEST(Lifetimes, ThePeakLoadCountsHalfOpenLifetimes) {
  const PackProblem p =
      lifetime_problem({4, 4, 4, 4, 4}, {{0, 3}, {3, 9}, {0, 9}, {9, 21}, {0, 21}});
  EXPECT_EQ(peak_load(p), 12);
}

TEST(Lifetimes, GraphAndIndexAgreeWithLifetimes) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const PackProblem p = testing::random_lifetimes(seed, 60, 700, 9);
    const PackProblem graph = with_conflict_graph(p);
    const ConflictIndex index(p);
    for (std::size_t i = 0; i < p.sizes.size(); ++i) {
      std::vector<std::int32_t> found;
      index.for_each(i, [&](std::int32_t j) { found.push_back(j); });
      std::sort(found.begin(), found.end());
      const auto expected = graph.conflicts(i);
      EXPECT_EQ(found, std::vector<std::int32_t>(expected.begin(), expected.end()));
    }
    for (const Packer& packer : packers()) {
      const Packing packing = packer.pack(p);
      EXPECT_TRUE(validate(p, packing)) << packer.name;
      EXPECT_TRUE(validate(graph, packing)) << packer.name;
    }
    EXPECT_EQ(clique_bound(p), peak_load(p));
    EXPECT_EQ(clique_bound(graph), peak_load(p)) << "begins find all cliques of intervals";
  }
}

TEST(Cliques, OfAGraphAllConflictWithEachOther) {
  // A ring of five: cyclic lifetimes whose largest cliques are pairs.
  PackProblem ring;
  ring.sizes = {5, 4, 3, 2, 1};
  ring.starts = {0, 1, 2, 3, 4};
  ring.neighbour_start = {0, 2, 4, 6, 8, 10};
  ring.neighbours = {1, 4, 0, 2, 1, 3, 2, 4, 3, 0};
  EXPECT_EQ(clique_bound(ring), 9);
  const Cliques cliques = find_cliques(ring);
  for (std::size_t q = 0; q < cliques.count(); ++q) EXPECT_EQ(cliques.members(q).size(), 2u);
}

TEST(Validate, NamesWhatIsWrong) {
  const PackProblem p = lifetime_problem({4, 4}, {{0, 3}, {2, 9}});
  EXPECT_TRUE(validate(p, {{0, 4}, 8}));
  EXPECT_FALSE(validate(p, {{0, 3}, 7})) << "overlap";
  EXPECT_FALSE(validate(p, {{0, 4}, 9})) << "footprint";
  EXPECT_FALSE(validate(p, {{-1, 4}, 8})) << "not placed";
  EXPECT_FALSE(validate(p, {{0}, 4})) << "too few";
  EXPECT_FALSE(validate(with_conflict_graph(p), {{0, 3}, 7})) << "overlap";
}

TEST(CyclicProblem, BuffersMeetAcrossTheEndOfTheCycle) {
  // Cycle of 10: 8 to 12 is there at 0 and 1 again.
  const std::vector<Lifetime> lives{{8, 12}, {0, 2}, {2, 8}, {0, 10}};
  const PackProblem problem = cyclic_problem({1, 2, 3, 4}, lives, 10);
  const auto neighbours = [&](std::size_t i) {
    const auto found = problem.conflicts(i);
    return std::vector<std::int32_t>(found.begin(), found.end());
  };
  EXPECT_THAT(neighbours(0), ::testing::ElementsAre(1, 3));
  EXPECT_THAT(neighbours(1), ::testing::ElementsAre(0, 3));
  EXPECT_THAT(neighbours(2), ::testing::ElementsAre(3));
  EXPECT_THAT(neighbours(3), ::testing::ElementsAre(0, 1, 2));
  EXPECT_EQ(problem.sizes[2], 3);
}

}  // namespace
}  // namespace tidepool
