#include "planners/toolkit/remakable_gaps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/at.h"
#include "ir/load_profile.h"
#include "support/program_builder.h"

namespace tidepool {
namespace {

using ::testing::ElementsAre;

/// "cheap" is made of "dear", both are read again in reverse order; "fixed" must not be made again.
struct RemakableExample {
  testing::ProgramBuilder b;
  TensorId dear, cheap, fixed, g;
  Program program;

  RemakableExample() {
    using enum AccessMode;
    dear = b.tensor("dear", 1 << 20);
    cheap = b.tensor("cheap", 1 << 20);
    fixed = b.tensor("fixed", 1 << 20);
    g = b.tensor("g", 64);
    b.device("make dear", {{dear, write}}, Nanos{9000});
    b.last().random = true;
    b.device("make cheap", {{dear, read}, {cheap, write}}, Nanos{1000});
    b.device("make fixed", {{cheap, read}, {fixed, write}}, Nanos{1000});
    b.last().recomputable = false;
    b.device("turn", {{g, write}}, Nanos{1000});
    b.device("back", {{g, update}, {fixed, read}}, Nanos{1000});
    b.device("further", {{g, update}, {cheap, read}}, Nanos{1000});
    b.device("last", {{g, update}, {dear, read}}, Nanos{1000});
    program = b.build();
  }
};

std::vector<RemakableGap> gaps_of(const RemakableExample& example, const AccessIndex& index) {
  Machine machine;
  machine.set_alignment(64);
  return remakable_gaps(example.program, index, machine,
                        least_workspace_algorithms(example.program));
}

TEST(RemakableGaps, AreThoseWhoseOpsMayRunAgainWithTheTimeThatTakes) {
  const RemakableExample example;
  const AccessIndex index(example.program);
  const auto gaps = gaps_of(example, index);
  std::vector<TensorId> tensors;
  std::vector<Nanos> times;
  for (const RemakableGap& gap : gaps) {
    tensors.push_back(index.gaps()[at(gap.gap)].tensor);
    times.push_back(gap.time);
  }
  EXPECT_THAT(tensors, ElementsAre(example.dear, example.cheap));
  EXPECT_THAT(times, ElementsAre(Nanos{9000}, Nanos{1000}));
}

/// "cheap" needs "dear" before that is read again itself.
TEST(RemakableGaps, SayWhichOthersTheirClonesRead) {
  const RemakableExample example;
  const AccessIndex index(example.program);
  const auto gaps = gaps_of(example, index);
  ASSERT_EQ(gaps.size(), 2U);
  EXPECT_THAT(gaps[0].sources, ElementsAre());
  EXPECT_THAT(gaps[1].sources, ElementsAre(gaps[0].gap));
}

TEST(RemakableGaps, TheCheapestAreThoseThatSaveMostForTheirTime) {
  const std::vector<RemakableGap> gaps{{GapId{0}, OpId{0}, OpId{9}, 100, Nanos{100}},
                                       {GapId{2}, OpId{1}, OpId{8}, 100, Nanos{10}},
                                       {GapId{3}, OpId{2}, OpId{7}, 200, Nanos{10}}};
  EXPECT_THAT(cheapest_remade(gaps, 4, 0.0), ElementsAre(kStays, kStays, kStays, kStays));
  EXPECT_THAT(cheapest_remade(gaps, 4, 0.4), ElementsAre(kStays, kStays, kStays, kRemade));
  EXPECT_THAT(cheapest_remade(gaps, 4, 0.6), ElementsAre(kStays, kStays, kRemade, kRemade));
  EXPECT_THAT(cheapest_remade(gaps, 4, 1.0), ElementsAre(kRemade, kStays, kRemade, kRemade));
}

}  // namespace
}  // namespace tidepool
