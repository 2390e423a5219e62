#include "planners/published/dqn/agent.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "ir/load_profile.h"
#include "planners/published/dqn/table_network.h"
#include "support/swap_programs.h"

namespace tidepool {
namespace {

/// Counts what it is asked.
class CountingNetwork : public testing::TableNetwork {
 public:
  using TableNetwork::TableNetwork;
  std::vector<float> values(const dqn::AgentState& state) override {
    ++asked;
    return TableNetwork::values(state);
  }
  double learn(std::span<const dqn::Transition* const> batch) override {
    ++learned;
    last_batch = batch.size();
    for (const dqn::Transition* t : batch) {
      terminal += t->terminal ? 1 : 0;
      least_reward = std::min(least_reward, t->reward);
      if (!t->terminal) discounts.insert(t->discount);
      if (t->terminal) discounts.insert(0);
    }
    return 0;
  }
  std::size_t terminal = 0;
  float least_reward = 0;
  std::set<float> discounts;  ///< 0: terminal
  int asked = 0;
  int learned = 0;
  std::size_t last_batch = 0;
};

class DqnAgent : public ::testing::Test {
 protected:
  [[nodiscard]] Bytes limit() const {
    return load_profile(program_, lowering_.index(), 64, algorithms_).peak * 7 / 10;
  }

  Program program_ = testing::large_program(1);
  Machine machine_ = testing::random_machine(101);
  Lowering lowering_{program_, machine_};
  std::vector<std::int32_t> algorithms_ = least_workspace_algorithms(program_);
  dqn::Environment environment_{lowering_, algorithms_, limit() * 3 / 4, {}};
  CountingNetwork network_{{}};
  QLearning settings_;
};

TEST_F(DqnAgent, ActsAtRandomAtFirstAndByTheNetworkAtLast) {
  dqn::Agent agent(environment_, &network_, settings_, 1);
  EXPECT_FALSE(agent.learn(limit(), 0, {}).greedy);
  EXPECT_EQ(network_.asked, 0);
  const std::int64_t before = agent.steps();
  EXPECT_TRUE(agent.learn(limit(), 1, {}).greedy);
  EXPECT_EQ(network_.asked, agent.steps() - before);
}

TEST_F(DqnAgent, AsManyActionsAreTheNetworksAsTheDrawsSay) {
  dqn::Agent agent(environment_, &network_, settings_, 1);
  for (int i = 0; i < 200; ++i) agent.learn(limit(), 0.3, {});
  EXPECT_NEAR(network_.asked / static_cast<double>(agent.steps()), 0.3, 0.05);
}

TEST_F(DqnAgent, LearnsFromABatchEverySoManyDecisions) {
  settings_.batch = 16;
  settings_.decisions_a_step = 4;
  dqn::Agent agent(environment_, &network_, settings_, 1);
  while (agent.steps() < 16) agent.learn(limit(), 0.5, {});
  const std::int64_t steps = agent.steps() / 4;
  const int before = network_.learned;
  while (agent.steps() < 100) agent.learn(limit(), 0.5, {});
  EXPECT_EQ(network_.learned - before, agent.steps() / 4 - steps);
  EXPECT_EQ(network_.last_batch, 16U);
}

TEST_F(DqnAgent, TargetsReachToTheEndOfTheEpisodeOrOneRewardFar) {
  dqn::Agent to_the_end(environment_, &network_, settings_, 1);
  double least_return = 0;
  for (int i = 0; i < 40; ++i) {
    least_return = std::min(least_return, to_the_end.learn(limit(), 0, {}).episode_return);
  }
  ASSERT_GT(network_.learned, 0);
  EXPECT_EQ(network_.terminal, static_cast<std::size_t>(network_.learned) * 32);
  EXPECT_GE(network_.least_reward, least_return - 0.5) << "rewards before may have been positive";
  network_ = CountingNetwork{{}};
  settings_.reach = 1;
  dqn::Agent one(environment_, &network_, settings_, 1);
  for (int i = 0; i < 40; ++i) one.learn(limit(), 0, {});
  EXPECT_LT(network_.terminal, static_cast<std::size_t>(network_.learned) * 16);
}

/// The sum of n rewards was not discounted, and the value behind them as if they were one.
TEST_F(DqnAgent, RewardsAreDiscountedOncePerDecision) {
  settings_.discount = 0.5;
  for (const int reach : {1, 3, 0}) {
    SCOPED_TRACE(reach);
    network_ = CountingNetwork{{}};
    settings_.reach = reach;
    dqn::Agent agent(environment_, &network_, settings_, 1);
    for (int i = 0; i < 40; ++i) agent.learn(limit(), 0, {});
    ASSERT_FALSE(network_.discounts.empty());
    if (reach == 0) continue;
    EXPECT_TRUE(network_.discounts.contains(std::pow(0.5F, static_cast<float>(reach))));
    EXPECT_LE(network_.discounts.size(), 2U) << "and 0 of terminal ones";
  }
}

/// "Nothing" was in the maximum also where it ends the episode: a value that no target trains.
TEST_F(DqnAgent, StatesSayWhereDoingNothingIsNoAction) {
  environment_.begin(limit());
  int must = 0;
  Random random(3);
  for (int episode = 0; episode < 20; ++episode) {
    environment_.begin(limit());
    while (!environment_.terminal()) {
      EXPECT_EQ(environment_.state().must_act, environment_.must_act());
      must += environment_.must_act() ? 1 : 0;
      const auto& valid = environment_.state().valid;
      environment_.act(valid[random.below(valid.size())]);
    }
  }
  EXPECT_GT(must, 0);
  testing::TableNetwork table{{.learning_rate = 1}};
  table.set_graph(environment_.graph());
  dqn::Transition t;
  t.action = 1;
  t.reward = -2;
  t.next.valid = {2};
  t.next.must_act = true;
  dqn::Transition bad;
  bad.action = 2;
  bad.reward = -3;
  bad.terminal = true;
  const dqn::Transition* const first[] = {&bad};
  table.learn(first);
  const dqn::Transition* const second[] = {&t};
  table.learn(second);
  EXPECT_EQ(table.values({.valid = {1}})[1], -5) << "0 of doing nothing is no value here";
}

TEST_F(DqnAgent, WithoutANetworkAllActionsAreRandom) {
  dqn::Agent agent(environment_, nullptr, settings_, 1);
  EXPECT_FALSE(agent.learn(limit(), 1, {}).greedy);
}

TEST_F(DqnAgent, PlaysAStrategyAgain) {
  dqn::Agent agent(environment_, nullptr, settings_, 1);
  while (!agent.learn(limit(), 0, {}).feasible) {
  }
  const Strategy found = environment_.strategy();
  ASSERT_TRUE(agent.follow(limit(), &found, {}).feasible);
  for (std::size_t g = 0; g < found.gaps.size(); ++g) {
    if (environment_.strategy().gaps[g] == Decision::keep) continue;
    EXPECT_EQ(environment_.strategy().gaps[g], found.gaps[g]) << g;
  }
}

TEST_F(DqnAgent, EndsWhenAskedToStop) {
  dqn::Agent agent(environment_, nullptr, settings_, 1);
  EXPECT_TRUE(agent.learn(limit(), 0, [] { return true; }).stopped);
}

}  // namespace
}  // namespace tidepool
