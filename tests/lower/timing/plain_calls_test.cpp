#include "lower/timing/plain_calls.h"

#include <gtest/gtest.h>

namespace tidepool {
namespace {

class PlainCallsTest : public ::testing::Test {
 protected:
  /// Device calls of 10 ns.
  PlainCallsTest() {
    problem_.calls.resize(8);
    for (std::size_t c = 0; c < 8; ++c) {
      problem_.calls[c].on_device = true;
      ends_.emplace_back(10 * (c + 1));
    }
  }
  void find() { plain_.find(problem_, ends_); }

  TimingProblem problem_;
  std::vector<Nanos> ends_;
  PlainCalls plain_;
};

TEST_F(PlainCallsTest, AreAllWhereNothingMoves) {
  find();
  EXPECT_EQ(plain_.end_of_stretch(0), 8);
}

TEST_F(PlainCallsTest, EndAtCopiesHostCallsAndWaits) {
  problem_.outs.resize(1);
  problem_.outs[0].call = 1;
  problem_.ins.resize(1);
  problem_.ins[0].call = 3;  // behind which its bytes are part of the static load
  problem_.calls[6].on_device = false;
  problem_.calls[7].needs_out = 0;
  find();
  std::vector<CallId> ends;
  for (CallId c = 0; c < 8; ++c) ends.push_back(plain_.end_of_stretch(c));
  EXPECT_EQ(ends, (std::vector<CallId>{1, 1, 3, 3, 4, 6, 6, 7}));
  plain_.begin_pass();
  EXPECT_EQ(plain_.end_of_stretch(0), 1);
}

TEST_F(PlainCallsTest, TheFirstThatEndsAfterATimeIsAmongThoseAsked) {
  find();
  EXPECT_EQ(plain_.first_ending_after(0, 8, Nanos{30}), 3);
  EXPECT_EQ(plain_.first_ending_after(5, 8, Nanos{30}), 5);
  EXPECT_EQ(plain_.first_ending_after(0, 2, Nanos{30}), 2);
}

}  // namespace
}  // namespace tidepool
