#include "planners/published/modnn/offloading_scheme.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/at.h"

namespace tidepool::modnn {
namespace {

/// The memory of the paper's Fig. 6: blocks 1 to 6, of which 4 may not leave. An allocation of 4
/// can have the place of 1 and 2 or that of 5 and 6.
class OffloadingScheme6 : public ::testing::Test {
 protected:
  OffloadingScheme6() {
    std::int32_t owner = 1;
    for (const Bytes bytes : {2, 2, 1, 3, 2, 2}) {
      segments_.push_back(*memory_.allocate(bytes, owner++));
      // One nanosecond a byte.
      blocks_.push_back({true, Nanos{0}, Nanos{0}, Nanos{bytes}, bytes});
    }
    blocks_[3].may = false;
  }
  [[nodiscard]] std::optional<OffloadingScheme> find(Nanos from = Nanos{100},
                                                     Nanos stream_free = Nanos{0}) const {
    return find_offloading_scheme(memory_, {4, from, stream_free},
                                  [&](std::int32_t owner) { return blocks_[at(owner - 1)]; });
  }
  /// Of the first block.
  [[nodiscard]] std::int32_t chosen(Nanos from = Nanos{100}) const {
    const auto scheme = find(from);
    return scheme ? memory_.segment(scheme->first).owner : kNone;
  }

  MemoryManager memory_{12};
  std::vector<SegmentId> segments_;
  std::vector<Leaving> blocks_;
};

TEST_F(OffloadingScheme6, AllElseEqualTheLowestAddressIsTaken) {
  const auto scheme = find();
  ASSERT_TRUE(scheme);
  EXPECT_EQ(scheme->first, segments_[0]);
  EXPECT_EQ(scheme->last, segments_[1]);
  EXPECT_EQ(scheme->copied, 4);
  EXPECT_EQ(scheme->free_from, Nanos{4});
}

TEST_F(OffloadingScheme6, TheLeastDelayDecides) {
  blocks_[1].ready = Nanos{99};
  EXPECT_EQ(chosen(Nanos{102}), 1) << "free before it is wanted: no delay";
  EXPECT_EQ(chosen(Nanos{100}), 5) << "a nanosecond late";
  blocks_[5].last_use = Nanos{110};
  EXPECT_EQ(chosen(Nanos{100}), 1) << "used for longer";
}

TEST_F(OffloadingScheme6, ThenTheFewestBytesCopied) {
  blocks_[5].copied = 0;  // the host has it
  blocks_[5].copy_time = Nanos{0};
  EXPECT_EQ(chosen(), 5);
  EXPECT_EQ(find()->copied, 2);
  // A copy that is not made takes no time either.
  EXPECT_EQ(find(Nanos{0}, Nanos{50})->free_from, Nanos{52});
}

TEST_F(OffloadingScheme6, CopiesAreMadeOneAfterTheOtherWhenTheStreamIsFree) {
  blocks_[0].ready = Nanos{20};
  blocks_[4].may = false;
  EXPECT_EQ(find(Nanos{0}, Nanos{7})->free_from, Nanos{24});
  EXPECT_EQ(find(Nanos{0}, Nanos{30})->free_from, Nanos{34});
}

TEST_F(OffloadingScheme6, FreeSegmentsAreSpaceToo) {
  memory_.release(segments_[2], Nanos{40});
  blocks_[0].may = false;
  blocks_[4].may = false;
  EXPECT_FALSE(find()) << "2 and the free byte are 3";
  memory_.release(segments_[3], Nanos{40});
  const auto scheme = find();
  ASSERT_TRUE(scheme);
  EXPECT_EQ(scheme->copied, 0) << "3 and 4 are enough by themselves";
  EXPECT_EQ(scheme->free_from, Nanos{40});
}

TEST_F(OffloadingScheme6, ThereMayBeNone) {
  blocks_[1].may = blocks_[4].may = false;
  EXPECT_FALSE(find());
}

}  // namespace
}  // namespace tidepool::modnn
