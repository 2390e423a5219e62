#include "lower/timing/in_queue.h"

#include <gtest/gtest.h>

namespace tidepool {
namespace {

std::vector<std::int32_t> left(const InQueue& queue) {
  std::vector<std::int32_t> all;
  for (std::size_t k = queue.first(); k < queue.end(); k = queue.after(k)) {
    all.push_back(queue.copy_at(k));
  }
  return all;
}

TEST(InQueue, PassesOverWhatIsIssuedOutOfTurn) {
  TimingProblem problem;
  problem.ins.resize(5);
  for (std::size_t i = 0; i < 5; ++i) problem.ins[i].call = static_cast<CallId>(10 * i);
  problem.free_ins = {0, 1, 3, 4};
  InQueue queue;
  queue.begin(problem);
  queue.begin_pass();
  EXPECT_EQ(left(queue), (std::vector<std::int32_t>{0, 1, 3, 4}));
  queue.remove(1, 0);
  queue.remove(2, 0);
  EXPECT_EQ(left(queue), (std::vector<std::int32_t>{0, 4}));
  EXPECT_EQ(queue.next_due(), 0);
  queue.remove(0, 0);
  EXPECT_EQ(queue.next_due(), 40);
  EXPECT_FALSE(queue.empty());
  queue.remove(3, 3);
  EXPECT_TRUE(queue.empty());
  queue.begin_pass();
  EXPECT_EQ(left(queue), (std::vector<std::int32_t>{0, 1, 3, 4}));
}

}  // namespace
}  // namespace tidepool
