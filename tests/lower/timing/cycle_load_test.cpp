#include "lower/timing/cycle_load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tidepool {
namespace {

using ::testing::ElementsAre;

TimingProblem loads(std::vector<Bytes> of_calls) {
  TimingProblem problem;
  problem.calls.resize(of_calls.size());
  problem.static_load = std::move(of_calls);
  return problem;
}

TimedIn copy_for(CallId call, Bytes bytes) {
  TimedIn in;
  in.call = call;
  in.bytes = bytes;
  return in;
}

TEST(CycleLoad, AnEarlyCopyTakesItsBytesUntilTheCallItIsFor) {
  const TimingProblem problem = loads({10, 20, 30, 40, 50});
  CycleLoad load;
  load.begin(problem);
  load.begin_iteration();
  load.reach(0);
  load.reach(1);
  load.add_copy_in(copy_for(3, 5), 5, 1);  // from behind call 0 of this iteration on
  for (CallId c = 2; c < 5; ++c) load.reach(c);
  EXPECT_THAT(load.all(), ElementsAre(10, 25, 35, 45, 50));
}

TEST(CycleLoad, ACopyThatBeginsInTheIterationBeforeCountsThereToo) {
  const TimingProblem problem = loads({10, 20, 30});
  CycleLoad load;
  load.begin(problem);
  load.begin_iteration();
  load.reach(0);
  load.add_copy_in(copy_for(1, 7), 1, 0);  // from behind call 1 of the iteration before
  EXPECT_EQ(load.of_extended(1), 20);
  EXPECT_EQ(load.of_extended(2), 37);
  EXPECT_EQ(load.of_extended(3), 17);
  load.reach(1);
  load.reach(2);
  EXPECT_THAT(load.all(), ElementsAre(17, 27, 30));
}

TEST(CycleLoad, StretchesAreReachedUpToTheFirstAboveTheLimit) {
  const TimingProblem problem = loads({10, 20, 30, 40});
  CycleLoad load;
  load.begin(problem);
  load.begin_iteration();
  load.reach(0);
  load.add_copy_in(copy_for(3, 5), 4, 0);
  EXPECT_EQ(load.reach_up_to(1, 3, 35), 3);
  EXPECT_EQ(load.of(2), 35);
  EXPECT_EQ(load.reach_up_to(1, 3, 34), 2);
}

}  // namespace
}  // namespace tidepool
