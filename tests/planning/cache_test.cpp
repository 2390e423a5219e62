#include "planning/cache.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "base/file.h"
#include "base/output_file.h"
#include "ir/load_profile.h"
#include "planners/registry.h"
#include "planners/settings.h"
#include "planning/obtain_plan.h"
#include "support/process.h"
#include "support/random_program.h"
#include "support/some_value.h"
#include "support/swap_programs.h"

namespace tidepool {
namespace {

class PlanCache : public ::testing::Test {
 protected:
  void SetUp() override { ::setenv("XDG_CACHE_HOME", folder_.file("cache").c_str(), 1); }

  [[nodiscard]] PlanRequest request(OptionValues values = {}) const {
    PlanRequest request{subject_, budget_, "none", {}};
    request.options.values = std::move(values);
    return request;
  }

  testing::TemporaryFolder folder_;
  Observer observer_;
  const Profile subject_{"device", testing::random_program(1), testing::random_machine(1)};
  const Budget budget_{Bytes{1} << 40, 0};
};

/// Whatever option any planner has: a plan of one value is no answer for another. An option that is
/// forgotten in the identity is one that does nothing the second time.
TEST_F(PlanCache, EveryValueOfEveryOptionIsAnotherPlan) {
  const Cache cache({}, observer_);
  FixedWorkload workload(subject_.program);
  const auto planned =
      make_plan(**make_planner("none"), workload, subject_.machine, budget_, request().options);
  ASSERT_TRUE(planned) << planned.error().message;
  cache.keep(request(), *planned);
  EXPECT_TRUE(cache.plan(request()));
  for (const OptionRecord& record : all_planner_options()) {
    SCOPED_TRACE(record.name);
    OptionValues one;
    one.set(record.name, testing::some_value(record));
    OptionValues other;
    other.set(record.name, testing::some_value(record, true));
    EXPECT_FALSE(cache.plan(request(one))) << "the usual value's";
    cache.keep(request(one), *planned);
    EXPECT_TRUE(cache.plan(request(one)));
    EXPECT_FALSE(cache.plan(request(other)));
  }
  EXPECT_TRUE(cache.plan(request()));
}

/// Plans of one job in several budgets.
class PlansOfOtherBudgets : public ::testing::Test {
 protected:
  void SetUp() override { ::setenv("XDG_CACHE_HOME", folder_.file("cache").c_str(), 1); }

  [[nodiscard]] PlanRequest request(Bytes budget) const {
    PlanRequest request{subject_, {budget, 0}, "tide", {}};
    request.options.time_limit = Nanos{1};  // nothing is found in the time but the start
    return request;
  }
  [[nodiscard]] Planned planned(Bytes budget, std::int64_t evaluations = 1) const {
    FixedWorkload workload(subject_.program);
    PlannerOptions options;
    options.evaluation_limit = evaluations;
    return *make_plan(**make_planner("tide"), workload, subject_.machine, {budget, 0}, options);
  }
  /// One that streams, so a slow one, in whatever budget.
  [[nodiscard]] Planned slow() const {
    return planned(smallest_budget(subject_.program, subject_.machine.alignment()).bytes);
  }
  /// As its file has it.
  [[nodiscard]] Planned faster_than_any() const {
    Planned plan = planned(kSmall);
    plan.lowered.iteration_time = Nanos{1};
    return plan;
  }
  Result<ObtainedPlan> obtain(const PlanRequest& asked, bool replan = false) {
    return obtain_plan(**make_planner("tide"), asked, cache_, replan, observer_);
  }

  static constexpr Bytes kSmall = testing::mib(100);
  static constexpr Bytes kLarge = testing::mib(105);
  testing::TemporaryFolder folder_;
  Observer observer_;
  const Cache cache_{(::setenv("XDG_CACHE_HOME", folder_.file("cache").c_str(), 1), CacheSpec{}),
                     observer_};
  const Profile subject_{"device", testing::SwapExample::make(), testing::two_mib_a_ms()};
};

TEST_F(PlansOfOtherBudgets, TheFastestThatFitsIsFoundAndProved) {
  EXPECT_FALSE(cache_.fastest_that_fits(request(kLarge)));
  cache_.keep(request(kSmall), planned(kSmall, 200));
  cache_.keep(request(testing::mib(80)), slow());
  const auto found = cache_.fastest_that_fits(request(kLarge));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->lowered.iteration_time, planned(kSmall, 200).lowered.iteration_time);
  EXPECT_LT(found->lowered.iteration_time, slow().lowered.iteration_time);
  EXPECT_TRUE(cache_.fastest_that_fits(request(kSmall))) << "its own counts, too";
  EXPECT_FALSE(cache_.fastest_that_fits(request(slow().lowered.plan.device_bytes() - 1)))
      << "none fits";
  PlanRequest other = request(kLarge);
  other.options.seed = 2;
  EXPECT_FALSE(cache_.fastest_that_fits(other)) << "of other settings";
}

TEST_F(PlansOfOtherBudgets, OneOfALargerBudgetThatFitsCountsToo) {
  const Planned of_less = planned(kSmall, 200);
  cache_.keep(request(kLarge), of_less);
  const auto found = cache_.fastest_that_fits(request(kSmall));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->lowered.iteration_time, of_less.lowered.iteration_time);
}

TEST_F(PlansOfOtherBudgets, ADamagedPlanIsNone) {
  cache_.keep(request(kSmall), planned(kSmall));
  for (const auto& entry : std::filesystem::directory_iterator(cache_folder())) {
    std::string text = *read_file(entry.path().string());
    const auto offset = text.rfind("\"offset\":");  // it reads well and cannot be proved
    ASSERT_NE(offset, std::string::npos);
    text.insert(offset + 9, "9");
    ASSERT_TRUE(write_file(entry.path().string(), text));
  }
  EXPECT_FALSE(cache_.fastest_that_fits(request(kLarge)));
}

TEST_F(PlansOfOtherBudgets, NoPlanIsSlowerThanOneOfLessMemoryThatIsKept) {
  int faster = 0;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(seed);
    const Profile subject{"device", testing::random_program(seed, {6, 4096, 2}),
                          testing::random_machine(seed)};
    const Bytes least = smallest_budget(subject.program, subject.machine.alignment()).bytes;
    PlanRequest less{subject, {least * 5 / 4, 0}, "tide", {}};
    less.options.evaluation_limit = 500;
    FixedWorkload workload(subject.program);
    const auto kept =
        make_plan(**make_planner("tide"), workload, subject.machine, less.budget, less.options);
    ASSERT_TRUE(kept) << kept.error().message;
    less.options = request(least).options;
    PlanRequest asked = less;
    asked.budget.device = least * 13 / 10;
    const auto alone = obtain(asked);
    ASSERT_TRUE(alone) << alone.error().message;
    std::filesystem::remove_all(cache_folder());
    cache_.keep(less, *kept);
    const auto plan = obtain(asked);
    ASSERT_TRUE(plan) << plan.error().message;
    EXPECT_EQ(plan->from, "planner");
    EXPECT_LE(plan->planned.lowered.iteration_time, kept->lowered.iteration_time);
    faster += kept->lowered.iteration_time < alone->planned.lowered.iteration_time;
  }
  EXPECT_GT(faster, 0) << "or it shows nothing";
}

TEST_F(PlansOfOtherBudgets, OneOfAnotherLimitCountsToo) {
  PlanRequest longer = request(kSmall);
  longer.options.time_limit = Nanos{2};
  PlanRequest repeats = request(kSmall);
  repeats.options.evaluation_limit = 200;
  for (const PlanRequest& other : {longer, repeats}) {
    for (const Bytes budget : {kSmall, kLarge}) {
      std::filesystem::remove_all(cache_folder());
      cache_.keep(other, faster_than_any());
      EXPECT_FALSE(cache_.plan(request(budget))) << "it is no answer";
      const auto plan = obtain(request(budget));
      ASSERT_TRUE(plan) << plan.error().message;
      EXPECT_EQ(plan->from, "planner");
      EXPECT_EQ(plan->planned.lowered.iteration_time, Nanos{1});
    }
  }
}

/// `replan` searches again, but nobody wants a slower plan for the time it takes.
TEST_F(PlansOfOtherBudgets, PlanningAgainIsNeverSlower) {
  cache_.keep(request(kSmall), faster_than_any());
  const auto again = obtain(request(kSmall), true);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->from, "planner");
  EXPECT_EQ(again->planned.lowered.iteration_time, Nanos{1});
  EXPECT_TRUE(cache_.plan(request(kSmall)));
}

/// Or the cache would give it for the larger budget, and a faster one for the smaller.
TEST_F(PlansOfOtherBudgets, ASlowerPlanOfMoreMemoryIsKeptNoLonger) {
  cache_.keep(request(kLarge), slow());
  ASSERT_TRUE(cache_.plan(request(kLarge)));
  const Planned faster = planned(kSmall, 200);
  ASSERT_LT(faster.lowered.iteration_time, slow().lowered.iteration_time);
  cache_.drop_slower(request(kSmall), faster);
  EXPECT_FALSE(cache_.plan(request(kLarge)));
  cache_.keep(request(kLarge), faster);
  cache_.drop_slower(request(kSmall), slow());
  EXPECT_TRUE(cache_.plan(request(kLarge))) << "the faster one stays";
  PlanRequest repeats = request(kLarge);
  repeats.options.evaluation_limit = 1;
  cache_.keep(repeats, slow());
  cache_.drop_slower(request(kSmall), faster);
  EXPECT_TRUE(cache_.plan(repeats)) << "it would be planned again just so";
}

TEST_F(PlansOfOtherBudgets, WithAnEvaluationLimitTheResultDependsOnTheSeedAlone) {
  PlanRequest asked = request(kLarge);
  asked.options.evaluation_limit = 1;
  const auto before = obtain(asked, true);
  ASSERT_TRUE(before);
  PlanRequest less = asked;
  less.budget.device = kSmall;
  std::filesystem::remove_all(cache_folder());
  cache_.keep(less, faster_than_any());
  const auto after = obtain(asked);
  ASSERT_TRUE(after);
  EXPECT_EQ(after->planned.lowered.iteration_time, before->planned.lowered.iteration_time);
}

}  // namespace
}  // namespace tidepool
