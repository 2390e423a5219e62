#include "planners/dqn/dqn.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "ir/load_profile.h"
#include "planners/dqn/table_network.h"
#include "support/random_program.h"
#include "support/swap_programs.h"

namespace tidepool {
namespace {

constexpr double kShare = 0.6;  // of the peak

Result<Planned> plan(std::uint64_t seed, const PlannerOptions& options,
                     DqnMode mode = DqnMode::swap_and_recompute, double share = kShare) {
  const Program program = testing::large_program(seed);
  const Machine machine = testing::random_machine(seed + 100);
  FixedWorkload workload(program);
  const AccessIndex index(program);
  const Bytes peak =
      load_profile(program, index, machine.alignment(), least_workspace_algorithms(program)).peak;
  return make_plan(*make_dqn(mode, testing::make_table_network), workload, machine,
                   {static_cast<Bytes>(share * static_cast<double>(peak)), 0}, options);
}

PlannerOptions episodes(std::int32_t count, std::uint64_t seed = 1) {
  PlannerOptions options;
  options.seed = seed;
  options.evaluation_limit = 1'000'000;
  options.q_learning.episodes = count;
  options.q_learning.learning_rate = 0.1;
  options.q_learning.decisions_a_step = 1;
  return options;
}

TEST(Dqn, TheLastEpisodeIsGreedyAndTheBestIsKept) {
  const auto planned = plan(1, episodes(30));
  ASSERT_TRUE(planned) << planned.error().message;
  ASSERT_NE(planned->learning, nullptr);
  const auto& all = planned->learning->episodes;
  ASSERT_EQ(all.size(), 30U);
  EXPECT_TRUE(all.back().greedy);
  EXPECT_FALSE(all.front().greedy);
  double best = -1;
  std::int64_t steps = 0;
  for (const QLearningEpisode& episode : all) {
    if (episode.feasible && (best < 0 || episode.overhead < best)) best = episode.overhead;
    EXPECT_EQ(episode.best, best);
    EXPECT_GE(episode.steps, steps);
    steps = episode.steps;
  }
  EXPECT_GE(best, 0);
}

/// The mean over some programs of the mean of the last ten episodes, where these fit.
double late_overhead(bool uniform, double rate) {
  double sum = 0;
  int count = 0;
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    PlannerOptions options = episodes(150, seed);
    options.q_learning.uniform = uniform;
    options.q_learning.learning_rate = rate;
    const auto planned = plan(seed, options, DqnMode::swap_and_recompute);
    if (!planned || planned->learning == nullptr) continue;
    const auto& all = planned->learning->episodes;
    for (std::size_t i = all.size() - 10; i < all.size(); ++i) {
      sum += std::min(-all[i].episode_return, 1.0);
      ++count;
    }
  }
  return sum / count;
}

/// A table of zeros is no measure: it does nothing until it has to, which is a good rule here.
TEST(Dqn, LearnedActionsAreBetterThanRandomOnes) {
  EXPECT_LT(late_overhead(false, 0.1), 0.8 * late_overhead(true, 0));
}

TEST(Dqn, TheSeedDecidesWithANumberOfEpisodes) {
  const auto a = plan(2, episodes(20));
  const auto b = plan(2, episodes(20));
  ASSERT_TRUE(a && b);
  EXPECT_EQ(a->lowered.strategy.gaps, b->lowered.strategy.gaps);
  ASSERT_EQ(a->learning->episodes.size(), b->learning->episodes.size());
  for (std::size_t i = 0; i < a->learning->episodes.size(); ++i) {
    EXPECT_EQ(a->learning->episodes[i].episode_return, b->learning->episodes[i].episode_return);
  }
  EXPECT_EQ(a->learning->network, b->learning->network);
}

TEST(Dqn, SwapOnlyRecomputesNothing) {
  const auto planned = plan(3, episodes(10), DqnMode::swap);
  ASSERT_TRUE(planned) << planned.error().message;
  EXPECT_EQ(std::ranges::count(planned->lowered.strategy.gaps, Decision::recompute), 0);
  EXPECT_EQ(planned->lowered.strategy.planner, "dqn-swap");
}

TEST(Dqn, WhatFitsNeedsNoNetwork) {
  const auto planned = plan(3, episodes(10), DqnMode::swap, 2);
  ASSERT_TRUE(planned) << planned.error().message;
  EXPECT_EQ(planned->learning, nullptr);
}

TEST(Dqn, ANetworkThatCannotBeMadeIsAnError) {
  const Program program = testing::large_program(1);
  FixedWorkload workload(program);
  const auto none = [](const dqn::QNetworkOptions&) -> Result<std::unique_ptr<dqn::QNetwork>> {
    return fail(ErrorCode::runtime, "no library");
  };
  const auto planned =
      make_plan(*make_dqn(DqnMode::swap, none), workload, testing::random_machine(101),
                {smallest_budget(program, 64).bytes * 5 / 4, 0}, episodes(10));
  ASSERT_FALSE(planned);
  EXPECT_EQ(planned.error().message, "no library");
}

}  // namespace
}  // namespace tidepool
