#include "lower/placing/order.h"

#include <gtest/gtest.h>

#include "lower/placing/may_share.h"
#include "lower/placing/sharing.h"

namespace tidepool {
namespace {

/// Steps of 100 ns one after another on the compute stream.
std::vector<Step> steps_in_a_row(int count) {
  std::vector<Step> steps(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    Step& step = steps[static_cast<std::size_t>(i)];
    step.id = i;
    step.duration = Nanos{100};
    step.start = Nanos{100 * i};
    step.end = Nanos{100 * (i + 1)};
  }
  return steps;
}

Instance from_to(std::int32_t begin, std::int32_t end, bool crosses = false) {
  Instance instance;
  instance.begin = begin;
  instance.end = end;
  instance.crosses = crosses;
  return instance;
}

constexpr Nanos kIteration{600};

/// By the rule of pairs and by holds, which have to agree.
bool in_time(const std::vector<Step>& steps, std::vector<Nanos> starts, const Instance& a,
             const Instance& b) {
  Timeline t;
  t.steps = steps;
  t.iteration_time = kIteration;
  t.starts = std::move(starts);
  t.find_order();
  const bool may = testing::may_share_in_time(t.steps, t.starts, kIteration, a, b);
  t.instances.all = {a, b};
  const SharingRule& rule = sharing_rules()[2];
  PackProblem problem;
  make_pack_problem(t, std::vector<InstanceId>{0, 1}, 1, rule, problem);
  EXPECT_EQ(conflict(problem.holds[0], problem.holds[1]), !may);
  return may;
}

/// With the starts of the steps.
bool in_time(const std::vector<Step>& steps, const Instance& a, const Instance& b) {
  std::vector<Nanos> starts;
  for (const Step& step : steps) starts.push_back(step.start);
  return in_time(steps, std::move(starts), a, b);
}

TEST(MayShareInTime, WhenOneIsOverBeforeTheOtherBegins) {
  const auto steps = steps_in_a_row(6);
  EXPECT_TRUE(in_time(steps, from_to(0, 2), from_to(3, 5)));
  EXPECT_TRUE(in_time(steps, from_to(3, 5), from_to(0, 2)));
  EXPECT_FALSE(in_time(steps, from_to(0, 3), from_to(3, 5)));
}

TEST(MayShareInTime, NotWhenTheListHasThemInOrderButTheTimesOverlap) {
  auto steps = steps_in_a_row(6);
  steps[2].stream = 1;
  steps[2].end = Nanos{301};  // a slow copy
  EXPECT_TRUE(testing::may_share_with_waits(6, from_to(0, 2), from_to(3, 5)));
  EXPECT_FALSE(in_time(steps, from_to(0, 2), from_to(3, 5)));
}

TEST(MayShareInTime, WhenTheOtherCouldBeginLater) {
  const auto steps = steps_in_a_row(6);
  std::vector<Nanos> starts(6, Nanos{0});
  EXPECT_FALSE(in_time(steps, starts, from_to(0, 2), from_to(3, 5)));
  for (std::size_t i : {3U, 4U, 5U}) starts[i] = steps[2].end;
  EXPECT_TRUE(in_time(steps, starts, from_to(0, 2), from_to(3, 5)));
}

TEST(MayShareInTime, NotWhenTheWaitWouldPointForwards) {
  auto steps = steps_in_a_row(6);
  std::swap(steps[2], steps[4]);  // over in time before step 3 begins, issued after it
  steps[2].stream = 1;
  steps[4].stream = 2;
  EXPECT_FALSE(in_time(steps, from_to(0, 4), from_to(3, 5)));
}

TEST(MayShareInTime, AcrossTheBoundaryWithTheIterationTime) {
  auto steps = steps_in_a_row(6);
  const Instance wraps = from_to(4, 1, true);
  EXPECT_TRUE(in_time(steps, wraps, from_to(2, 3)));
  EXPECT_FALSE(in_time(steps, wraps, from_to(1, 3)));
  EXPECT_FALSE(in_time(steps, wraps, from_to(2, 4)));
  // A copy still running when the next iteration's instance begins.
  steps[5].stream = 1;
  steps[5].end = kIteration + Nanos{50};
  EXPECT_FALSE(in_time(steps, from_to(3, 5), from_to(0, 2)));
}

TEST(MayShareInTime, NeverWithWhatIsAlwaysThere) {
  const auto steps = steps_in_a_row(6);
  Instance always;
  always.always = true;
  EXPECT_FALSE(in_time(steps, always, from_to(2, 3)));
}

}  // namespace
}  // namespace tidepool
