#include "planners/published/dqn/replay_memory.h"

#include <gtest/gtest.h>

#include <set>

namespace tidepool {
namespace {

dqn::Transition with_action(std::int32_t action) {
  dqn::Transition transition;
  transition.action = action;
  return transition;
}

TEST(ReplayMemory, KeepsTheLastOnes) {
  dqn::ReplayMemory memory(4);
  for (std::int32_t i = 0; i < 10; ++i) memory.add(with_action(i));
  EXPECT_EQ(memory.size(), 4U);
  Random random(1);
  std::set<std::int32_t> seen;
  for (const dqn::Transition* t : memory.sample(200, random)) seen.insert(t->action);
  EXPECT_EQ(seen, (std::set<std::int32_t>{6, 7, 8, 9}));
}

TEST(ReplayMemory, DrawsAllAlike) {
  dqn::ReplayMemory memory(100);
  for (std::int32_t i = 0; i < 10; ++i) memory.add(with_action(i));
  Random random(1);
  std::vector<int> count(10, 0);
  for (const dqn::Transition* t : memory.sample(10'000, random)) {
    ++count[static_cast<std::size_t>(t->action)];
  }
  for (const int n : count) EXPECT_NEAR(n, 1000, 150);
}

}  // namespace
}  // namespace tidepool
