#include "planners/auto/starts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>
#include <vector>

namespace tidepool {
namespace {

using ::testing::ElementsAre;

std::vector<std::string_view> names_of(auto&& chosen) {
  std::vector<PlannerInfo> infos(planner_list().begin(), planner_list().end());
  std::erase_if(infos, [&](const PlannerInfo& info) { return !chosen(info); });
  std::ranges::stable_sort(infos, {}, turn_among_starts);
  std::vector<std::string_view> names;
  for (const PlannerInfo& info : infos) names.push_back(info.name);
  return names;
}

/// Plans of `auto` depend on the order as well: of plans that take as long the first one counts.
TEST(Starts, AreThosePlannersInThatOrder) {
  EXPECT_THAT(names_of([](const PlannerInfo& info) { return info.seeds_searches; }),
              ElementsAre("autoswap", "modnn", "home", "none", "autoswap-published", "vdnn-all",
                          "vdnn-conv", "vdnn-dyn", "vdnn-plus", "vdnn-plus-live", "memonger",
                          "superneurons", "superneurons-recompute", "superneurons-cache", "geeps",
                          "capuchin", "tflms"));
}

TEST(Starts, WhereThereIsNoTimeAreTwo) {
  EXPECT_THAT(names_of([](const PlannerInfo& info) {
                return info.seeds_searches && plans_in_any_time(info);
              }),
              ElementsAre("autoswap", "modnn"));
}

TEST(Starts, OfOtherSubBatchesComeFromThoseThatChooseThem) {
  EXPECT_THAT(names_of([](const PlannerInfo& info) {
                return info.seeds_searches && info.chooses_sub_batch && !info.keeps_everything;
              }),
              ElementsAre("modnn", "vdnn-plus", "vdnn-plus-live"));
}

/// It goes first, may stream where nothing else fits, and is waited for.
TEST(Starts, TheOneThatBeginsPlansForEveryBudget) {
  const auto names = names_of([](const PlannerInfo& info) { return info.begins_searches; });
  ASSERT_THAT(names, ElementsAre("autoswap"));
  EXPECT_TRUE(meets_every_budget(names.front()));
}

TEST(Starts, WithoutAPlanWhereNotEverythingFitsIsOne) {
  EXPECT_THAT(names_of([](const PlannerInfo& info) { return info.keeps_everything; }),
              ElementsAre("none"));
}

TEST(Starts, ANetworkIsPlayedByTheLearnerThatRecomputesToo) {
  const auto names = names_of([](const PlannerInfo& info) { return info.plays_for_others; });
  if (learns("dqn")) {
    EXPECT_THAT(names, ElementsAre("dqn"));
  } else {
    EXPECT_THAT(names, ElementsAre());
  }
  for (const PlannerInfo& info : planner_list()) {
    EXPECT_FALSE(info.learns && info.seeds_searches) << info.name;
  }
}

}  // namespace
}  // namespace tidepool
