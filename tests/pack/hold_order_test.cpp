#include "pack/hold_order.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "pack/holds.h"
#include "pack/validate.h"
#include "pack_problems.h"
#include "support/sanitized.h"

namespace tidepool {
namespace {

using testing::usual_or;

void expect_same(const PackProblem& p, std::uint64_t seed) {
  const PackProblem graph = hold_graph(p);
  for (const bool smallest_hole : {false, true}) {
    std::vector<std::int32_t> order = by_size_descending(p);
    for (const bool shuffled : {false, true}) {
      SCOPED_TRACE(::testing::Message() << seed << (smallest_hole ? " best" : " first")
                                        << (shuffled ? " shuffled" : ""));
      const Packing found = place_holds_in_order(p, order, smallest_hole);
      const Packing expected = place_in_order(graph, order, smallest_hole);
      ASSERT_EQ(found.offsets, expected.offsets);
      ASSERT_EQ(found.footprint, expected.footprint);
      const auto valid = validate(p, found);
      ASSERT_TRUE(valid) << valid.error().message;
      Random random(seed);
      for (std::size_t i = order.size(); i > 1; --i) {
        std::swap(order[i - 1], order[random.below(i)]);
      }
    }
  }
}

TEST(HoldOrder, PlacesAsOnTheGraph) {
  for (std::uint64_t seed = 0; seed < usual_or<std::uint64_t>(200, 40); ++seed) {
    expect_same(testing::random_holds(seed, 80, 60, 40, 20), seed);
  }
}

TEST(HoldOrder, PlacesManyShortHoldsAsOnTheGraph) {
  for (std::uint64_t seed = 0; seed < usual_or<std::uint64_t>(4, 1); ++seed) {
    PackProblem p = testing::random_holds(seed, 1500, 1200, 30, 1000);
    // A few stay long, so that walks over everything and lists come by turns.
    for (std::size_t i = 0; i < p.holds.size(); i += 50) p.holds[i].until.fill(1200);
    expect_same(p, seed);
  }
}

TEST(HoldOrder, LeavesFixedBuffersWhereTheyAre) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    PackProblem p = testing::random_holds(seed, 60, 60, 30, 20);
    p.fixed.assign(p.sizes.size(), -1);
    p.fixed[7] = 100;
    p.fixed[20] = 300;
    expect_same(p, seed);
  }
}

TEST(HoldOrder, StopsAtTheFootprintThatIsOfNoUseAndWhenTold) {
  PackProblem p = testing::random_holds(3, 500, 100, 60, 1000);
  const Packing whole = place_holds_in_order(p, by_size_descending(p), false);
  p.give_up_above = whole.footprint / 2;
  EXPECT_GT(place_holds_in_order(p, by_size_descending(p), false).footprint, p.give_up_above);
  p.stop = [] { return true; };
  EXPECT_EQ(place_holds_in_order(p, by_size_descending(p), false).footprint,
            std::numeric_limits<Bytes>::max());
}

}  // namespace
}  // namespace tidepool
