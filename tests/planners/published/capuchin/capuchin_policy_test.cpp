#include "planners/published/capuchin/capuchin_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/load_profile.h"
#include "planners/published/capuchin/capuchin_program.h"

namespace tidepool {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Chain = testing::CapuchinChain;

class CapuchinPolicyOfAChain : public ::testing::Test {
 protected:
  void choose(Bytes limit, bool swap = true, bool recompute = true) {
    lowering_ = std::make_unique<Lowering>(program_, testing::byte_a_nanosecond(1));
    MayDecide may;
    may.swap = swap;
    may.recompute = recompute;
    policy_ =
        std::make_unique<CapuchinPolicy>(*lowering_, may, least_workspace_algorithms(program_));
    enough_ = policy_->choose(limit, {});
  }
  [[nodiscard]] std::vector<std::string> names(std::span<const GapId> gaps) const {
    std::vector<std::string> result;
    for (const GapId g : gaps) result.push_back(name(g));
    return result;
  }
  [[nodiscard]] const std::string& name(GapId g) const {
    const Gap& gap = lowering_->index().gaps()[static_cast<std::size_t>(g)];
    return program_.tensors[static_cast<std::size_t>(gap.tensor)].name;
  }
  [[nodiscard]] OpId trigger(const Strategy& strategy, std::string_view tensor) const {
    for (const CopyHint& hint : strategy.hints) {
      if (name(hint.gap) == tensor) return *hint.in_trigger;
    }
    return kNone;
  }

  Program program_ = Chain::make();
  std::unique_ptr<Lowering> lowering_;
  std::unique_ptr<CapuchinPolicy> policy_;
  bool enough_ = false;
};

TEST_F(CapuchinPolicyOfAChain, SwapsAreTakenInTheOrderOfFallingFreeTimeUntilEnough) {
  choose(6010);
  EXPECT_THAT(policy_->swaps(), IsEmpty());
  choose(6009);
  EXPECT_THAT(names(policy_->swaps()), ElementsAre("x0"));
  choose(2010);
  EXPECT_TRUE(enough_);
  EXPECT_THAT(names(policy_->swaps()), ElementsAre("x0", "x1", "x2", "x3"));
  EXPECT_THAT(policy_->recomputed(), IsEmpty()) << "x3 has a free time of 0";
  choose(2009);
  EXPECT_FALSE(enough_) << "backward4 reads x4, x5 and writes a gradient";
}

TEST_F(CapuchinPolicyOfAChain, ACopyInIsTriggeredByTheLastOpBeforeItHasToStart) {
  choose(3100);
  const Strategy strategy = policy_->strategy(100'000, {});
  EXPECT_EQ(trigger(strategy, "x2"), Chain::kBackward3);
  EXPECT_EQ(trigger(strategy, "x1"), Chain::kBackward2);
}

TEST_F(CapuchinPolicyOfAChain, WhereItWouldOverlapWithAnotherItStartsEarlier) {
  program_.tensors[1].bytes = 1500;
  choose(3100);
  ASSERT_THAT(names(policy_->swaps()), ElementsAre("x0", "x1", "x2"));
  const Strategy strategy = policy_->strategy(100'000, {});
  EXPECT_EQ(trigger(strategy, "x1"), Chain::kBackward3);
  EXPECT_EQ(trigger(strategy, "x2"), Chain::kBackward4) << "from 5500 to 6500, not 6000 to 7000";
}

TEST_F(CapuchinPolicyOfAChain, ButNotInsideThePeak) {
  program_.tensors[1].bytes = 1500;
  choose(3100);
  EXPECT_EQ(trigger(policy_->strategy(3100, {}), "x2"), Chain::kBackward3)
      << "backward4 has 3010 bytes without it";
}

TEST_F(CapuchinPolicyOfAChain, WhatWasLateIsTriggeredEarlier) {
  choose(3100);
  policy_->strategy(100'000, {});
  std::vector<Nanos> waits(program_.ops.size(), Nanos{0});
  waits[Chain::kBackward2] = Nanos{1};
  EXPECT_THAT(names(policy_->late(waits)), ElementsAre("x2"));
  std::vector<Nanos> earlier(lowering_->index().gaps().size(), Nanos{0});
  earlier[static_cast<std::size_t>(policy_->late(waits)[0])] = Nanos{50};
  const Strategy strategy = policy_->strategy(100'000, earlier);
  EXPECT_EQ(trigger(strategy, "x2"), Chain::kBackward4);
  EXPECT_EQ(trigger(strategy, "x1"), Chain::kBackward2);
}

TEST_F(CapuchinPolicyOfAChain, WhatIsCheaperToRecomputeThanToSwapInViewIsRecomputed) {
  program_.tensors[3].bytes = 3000;  // x3: idle for 2000, two copies of 3000
  choose(4010);
  EXPECT_THAT(names(policy_->swaps()), ElementsAre("x0", "x1", "x2"));
  EXPECT_THAT(names(policy_->recomputed()), ElementsAre("x3"));
  // Of 4000 exposed, where making it takes longer.
  program_.ops[Chain::kForward2].algorithms[0].time = Nanos{4001};
  choose(4010);
  EXPECT_THAT(policy_->recomputed(), IsEmpty());
  EXPECT_THAT(names(policy_->swaps()), ElementsAre("x0", "x1", "x2", "x3"));
}

TEST_F(CapuchinPolicyOfAChain, ARecomputedTensorMakesThoseThatNeedItMoreExpensive) {
  // All alike: x1 first. Then x2 would take forward0 and forward1, x3 only forward2.
  choose(4010, false);
  EXPECT_TRUE(enough_);
  EXPECT_THAT(names(policy_->recomputed()), ElementsAre("x1", "x3"));
  choose(3010, false);
  EXPECT_THAT(names(policy_->recomputed()), ElementsAre("x1", "x3", "x2"));
}

TEST_F(CapuchinPolicyOfAChain, MoreBytesASecondComeFirst) {
  program_.tensors[3].bytes = 1100;
  choose(5200, false);
  EXPECT_THAT(names(policy_->recomputed()), ElementsAre("x3"));
}

TEST_F(CapuchinPolicyOfAChain, WithoutRecomputationExposedCopiesAreLeft) {
  program_.tensors[3].bytes = 3000;
  choose(4010, true, false);
  EXPECT_TRUE(enough_);
  EXPECT_THAT(names(policy_->swaps()), ElementsAre("x0", "x1", "x2", "x3"));
}

TEST_F(CapuchinPolicyOfAChain, CopiesOutWaitForEachOther) {
  // x2 and x3 are ready 10 and 1010 ns behind x1: the link is busy with x1 and x2 for 2000 ns.
  program_.ops[Chain::kForward2].algorithms[0].time = Nanos{10};
  choose(2010);
  EXPECT_TRUE(enough_);
  EXPECT_THAT(names(policy_->swaps()), ElementsAre("x0", "x1", "x2"));
  EXPECT_THAT(names(policy_->recomputed()), ElementsAre("x3")) << "10 ns, not 990 in view";
}

TEST_F(CapuchinPolicyOfAChain, ExposedSwapsTakeTheLinkFromOthersWithoutLimit) {
  program_.tensors[2].bytes = 3000;  // x2: idle for 4000, 2000 in view
  program_.tensors[3].bytes = 3000;  // x3: 4000 in view where it has the link alone, else 8000
  program_.tensors[4].bytes = 4000;
  program_.ops[Chain::kForward2 - 1].algorithms[0].time = Nanos{10'000};
  program_.ops[Chain::kForward2].algorithms[0].time = Nanos{5000};
  choose(7500);
  EXPECT_TRUE(enough_);
  EXPECT_THAT(names(policy_->swaps()), ElementsAre("x0", "x1", "x2"));
  EXPECT_THAT(names(policy_->recomputed()), ElementsAre("x3"));
  program_.ops[Chain::kForward2].algorithms[0].time = Nanos{8001};
  choose(7500);
  EXPECT_THAT(names(policy_->swaps()), ElementsAre("x0", "x1", "x2", "x3"));
}

TEST(CopyLane, FindsTheEarliestTimeBetweenOthers) {
  CopyLane lane;
  EXPECT_EQ(lane.earliest_start(Nanos{10}, Nanos{30}), Nanos{10});
  lane.reserve(Nanos{60}, Nanos{30});
  EXPECT_EQ(lane.earliest_start(Nanos{10}, Nanos{50}), Nanos{10});
  EXPECT_EQ(lane.earliest_start(Nanos{10}, Nanos{51}), Nanos{90});
  EXPECT_EQ(lane.earliest_start(Nanos{70}, Nanos{5}), Nanos{90});
  lane.reserve(Nanos{20}, Nanos{20});
  EXPECT_EQ(lane.earliest_start(Nanos{10}, Nanos{20}), Nanos{40});
  EXPECT_EQ(lane.earliest_start(Nanos{10}, Nanos{21}), Nanos{90});
  lane.reserve(Nanos{40}, Nanos{20});  // from 20 to 90 now
  EXPECT_EQ(lane.earliest_start(Nanos{20}, Nanos{1}), Nanos{90});
  EXPECT_EQ(lane.latest_start(Nanos{90}, Nanos{10}), Nanos{10});
}

TEST(CopyLane, FindsTheLatestTimeBetweenOthers) {
  CopyLane lane;
  EXPECT_EQ(lane.latest_start(Nanos{100}, Nanos{30}), Nanos{70});
  lane.reserve(Nanos{60}, Nanos{30});
  EXPECT_EQ(lane.latest_start(Nanos{100}, Nanos{10}), Nanos{90});
  EXPECT_EQ(lane.latest_start(Nanos{100}, Nanos{30}), Nanos{30});
  lane.reserve(Nanos{20}, Nanos{20});
  EXPECT_EQ(lane.latest_start(Nanos{100}, Nanos{20}), Nanos{40});
  EXPECT_EQ(lane.latest_start(Nanos{100}, Nanos{21}), Nanos{-1});
}

}  // namespace
}  // namespace tidepool
