#include "planners/published/dqn/dqn.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "base/at.h"
#include "ir/load_profile.h"
#include "planners/published/dqn/table_network.h"
#include "planners/registry.h"
#include "planning/make_plan.h"
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
  options.values.set("episodes", std::int64_t{count});
  options.values.set("dqn_rate", 0.1);
  options.values.set("dqn_decisions", 1);
  options.values.set("dqn_plain", true);
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
  std::optional<double> best;
  std::int64_t steps = 0;
  for (const QLearningEpisode& episode : all) {
    if (episode.overhead && (!best || *episode.overhead < *best)) best = episode.overhead;
    EXPECT_EQ(episode.best, best);
    EXPECT_GE(episode.steps, steps);
    steps = episode.steps;
  }
  EXPECT_TRUE(best);
}

TEST(Dqn, TheNetworkThatIsKeptPlayedTheBestGreedyEpisode) {
  const auto planned = plan(1, episodes(40));
  ASSERT_TRUE(planned) << planned.error().message;
  const QLearningRecord& learned = *planned->learning;
  std::optional<double> best;
  int greedy = 0;
  for (const QLearningEpisode& episode : learned.episodes) {
    if (!episode.greedy) continue;
    ++greedy;
    if (episode.overhead && (!best || *episode.overhead < *best)) best = episode.overhead;
  }
  EXPECT_GT(greedy, 1);
  ASSERT_TRUE(best);
  EXPECT_EQ(learned.greedy, best);
  PlannerOptions again = episodes(1);
  again.values.set("network", learned.network);
  again.values.set("dqn_greedy", true);
  const auto played = plan(1, again);
  ASSERT_TRUE(played) << played.error().message;
  EXPECT_EQ(played->learning->greedy, best);
}

/// Eight layers forward and back. Every second output takes a hundredth of the others to make
/// again; a copy over the slow link takes longer than all of the iteration.
Program layers() {
  using enum AccessMode;
  testing::ProgramBuilder b("layers");
  std::vector<TensorId> outputs{b.tensor("y0", 64 * kKiB)};
  b.device("begin", {{outputs[0], write}}, Nanos{100'000});
  for (int i = 1; i <= 8; ++i) {
    outputs.push_back(b.tensor(fmt::format("y{}", i), 64 * kKiB));
    b.device(fmt::format("forward{}", i), {{outputs[at(i - 1)], read}, {outputs[at(i)], write}},
             Nanos{i % 2 == 0 ? 1000 : 100'000});
  }
  for (int i = 8; i >= 1; --i) {
    b.device(fmt::format("backward{}", i), {{outputs[at(i)], read}, {outputs[at(i - 1)], read}},
             Nanos{100'000});
  }
  return b.build();
}

/// The mean of the last ten episodes of some seeds.
double late_return(bool uniform, double rate) {
  Machine machine = testing::byte_a_nanosecond(512);
  machine.to_host() = machine.to_device() = {2e7, Nanos{0}};
  double sum = 0;
  int count = 0;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    PlannerOptions options = episodes(100, seed);
    options.values.set("dqn_uniform", uniform);
    options.values.set("dqn_rate", rate);
    FixedWorkload workload(layers());
    const auto planned =
        make_plan(*make_dqn(DqnMode::swap_and_recompute, testing::make_table_network), workload,
                  machine, {7 * 64 * kKiB, 0}, options);
    if (!planned || planned->learning == nullptr) continue;
    const auto& all = planned->learning->episodes;
    for (std::size_t i = all.size() - 10; i < all.size(); ++i) {
      sum += all[i].episode_return;
      ++count;
    }
  }
  EXPECT_EQ(count, 50);
  return sum / count;
}

TEST(Dqn, LearnsWhatIsCheapToMakeAgain) {
  const double learned = late_return(false, 0.1);
  EXPECT_GT(learned, late_return(true, 0.1) / 2) << "uniformly random actions";
  EXPECT_GT(learned, late_return(false, 0) / 2) << "nothing is learned";
}

/// It was up to 24 times slower than what AutoSwap has in a hundredth of the time.
TEST(Dqn, IsNeverBehindThePlansItBeginsWithAndSaysWhoseItHas) {
  int of_others = 0;
  int better = 0;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE(seed);
    PlannerOptions options = episodes(3, seed);
    options.values.set("dqn_plain", false);
    const auto learned = plan(seed, options, DqnMode::swap);
    const auto alone = plan(seed, episodes(3, seed), DqnMode::swap);
    ASSERT_TRUE(learned && alone);
    const Program program = testing::large_program(seed);
    FixedWorkload workload(program);
    const AccessIndex index(program);
    const Machine machine = testing::random_machine(seed + 100);
    const Bytes peak =
        load_profile(program, index, machine.alignment(), least_workspace_algorithms(program)).peak;
    options.evaluation_limit /= 8;
    const auto autoswap =
        make_plan(**make_planner("autoswap"), workload, machine,
                  {static_cast<Bytes>(kShare * static_cast<double>(peak)), 0}, options);
    ASSERT_TRUE(autoswap);
    if (!autoswap->lowered.streaming) {
      EXPECT_LE(learned->lowered.iteration_time, autoswap->lowered.iteration_time);
    }
    const bool theirs = learned->notes[0].find("none is faster than that of") != std::string::npos;
    of_others += theirs ? 1 : 0;
    better += !theirs && learned->lowered.iteration_time < alone->lowered.iteration_time ? 1 : 0;
  }
  EXPECT_GT(of_others + better, 0);
}

TEST(Dqn, MutationsOfTheBestFindWhatEpisodesDoNot) {
  std::int64_t mutations = 0;
  std::int64_t improved = 0;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    PlannerOptions options = episodes(10, seed);
    options.values.set("dqn_plain", false);
    const auto planned = plan(seed, options);
    ASSERT_TRUE(planned);
    if (planned->learning == nullptr) continue;
    mutations += planned->learning->mutations;
    improved += planned->learning->better_at_random + planned->learning->better_by_network;
    const auto again = plan(seed, options);
    EXPECT_EQ(again->lowered.strategy.gaps, planned->lowered.strategy.gaps) << "the seed decides";
  }
  EXPECT_GT(mutations, 0);
  EXPECT_GT(improved, 0);
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
