#include "lower/timing/room_ahead.h"

#include <gtest/gtest.h>

#include <array>

namespace tidepool {
namespace {

/// Six device calls, of which the fourth leaves 10 bytes, the others 50; no copies out.
class RoomAheadTest : public ::testing::Test {
 protected:
  RoomAheadTest() {
    problem_.calls.resize(6);
    for (TimedCall& call : problem_.calls) {
      call.on_device = true;
      call.time = Nanos{10};
    }
    problem_.static_load = {50, 50, 50, 90, 50, 50};
    problem_.freed = {0};
    problem_.ins = {copy_for(2, 20), copy_for(3, 20), copy_for(5, 20), copy_for(5, 10)};
    times_.resize(problem_);
    predict_unstalled(problem_, times_);
    room_.begin(problem_, 100);
    room_.begin_pass(times_);
  }
  static TimedIn copy_for(CallId call, Bytes bytes) {
    TimedIn in;
    in.call = call;
    in.bytes = bytes;
    return in;
  }

  TimingProblem problem_;
  IterationTimes times_;
  RoomAhead room_;
};

TEST_F(RoomAheadTest, IsAskedForUpToTheCallThatTheCopyIsFor) {
  EXPECT_TRUE(room_.has_room(1, 0, {}));
  EXPECT_FALSE(room_.has_room(2, 0, {}));
  EXPECT_EQ(room_.no_room_at(2), 3);
  EXPECT_TRUE(room_.has_room(2, 4, {}));
  EXPECT_TRUE(room_.has_room(3, 0, {}));
}

TEST_F(RoomAheadTest, IsTakenByWhatIsIssued) {
  EXPECT_TRUE(room_.has_room(1, 1, {}));
  room_.take(problem_.ins[0], 0);
  EXPECT_TRUE(room_.has_room(1, 1, {}));
  room_.take(problem_.ins[0], 0);
  EXPECT_FALSE(room_.has_room(1, 1, {}));
  room_.begin_pass(times_);
  EXPECT_TRUE(room_.has_room(1, 1, {}));
}

TEST_F(RoomAheadTest, IsKeptForThoseThatArePassedBy) {
  const std::array<std::int32_t, 2> passed_by{0, 0};
  EXPECT_FALSE(room_.has_room(1, 0, passed_by));
  EXPECT_TRUE(room_.has_room(1, 0, std::span(passed_by).first(1)));
}

}  // namespace
}  // namespace tidepool
