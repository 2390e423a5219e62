#include "train/measured_plans.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "measure/subject_of.h"
#include "planning/budget.h"
#include "train/trials_fixture.h"

namespace tidepool::testing {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

/// Two planners in each of two budgets.
class MeasuredPlansTest : public TrialsTest {
 protected:
  MeasuredPlansTest() : job_(of_auto(60).job) {}

  void SetUp() override {
    TrialsTest::SetUp();
    SubjectSpec asked;
    asked.job = job_;
    const BudgetSpec least{.device = {.bytes = 0, .percent = 60}};
    const Cache cache(asked.cache, listener_);
    auto subject = subject_of(asked, least, cache, listener_);
    ASSERT_TRUE(subject) << subject.error().message;
    subject_.emplace(std::move(*subject));
    for (const double percent : {60.0, 80.0}) {
      const BudgetSpec spec{.device = {.bytes = 0, .percent = percent}};
      const auto budget = resolve_budget(spec, subject_->job_rounds(), subject_->profile.machine);
      ASSERT_TRUE(budget) << budget.error().message;
      budgets_.push_back(*budget);
      for (const char* name : {"tide", "autoswap"}) plans_.push_back(plan(name, *budget));
    }
    for (std::size_t i = 0; i < plans_.size(); ++i) {
      asked_.plans.push_back(&plans_[i].lowered.plan);
      asked_.budgets.push_back(i / 2);
    }
  }

  [[nodiscard]] Planned plan(const char* planner, const Budget& budget) const {
    FixedWorkload workload(subject_->profile.program);
    PlannerOptions options;
    options.evaluation_limit = 200;
    auto made =
        make_plan(**make_planner(planner), workload, subject_->profile.machine, budget, options);
    EXPECT_TRUE(made) << made.error().message;
    return std::move(*made);
  }
  [[nodiscard]] MeasuredPlans measured() {
    auto found = measure_plans(job_, subject_->profile, asked_, std::nullopt, listener_);
    EXPECT_TRUE(found) << found.error().message;
    return found ? std::move(*found) : MeasuredPlans{};
  }

  JobSpec job_;
  std::optional<Subject> subject_;
  std::vector<Budget> budgets_;
  std::vector<Planned> plans_;
  PlansToMeasure asked_;
};

MATCHER(IsMeasured, "") {
  return arg.iterations == 9 && arg.least > Nanos{0} && arg.least <= arg.time &&
         arg.time <= arg.most && arg.has_room;
}

TEST_F(MeasuredPlansTest, WhatIsPlannedByTheirTimesTakesTurnsWithTheFastestOfItsBudget) {
  std::vector<std::size_t> asked_for;
  asked_.correct = [&](const TimeModel& now, std::size_t fastest) {
    asked_for.push_back(asked_.budgets[fastest]);
    EXPECT_GT(now.time(*asked_.plans[fastest]), Nanos{0});
    return Result<std::optional<Planned>>(plan("auto", budgets_[asked_for.back()]));
  };
  const MeasuredPlans found = measured();
  EXPECT_THAT(found.plans, Each(IsMeasured()));
  EXPECT_THAT(asked_for, ElementsAre(0, 1));
  ASSERT_EQ(found.corrected.size(), 2U);
  for (const CorrectedPlan& plan : found.corrected) {
    EXPECT_LE(found.plans[plan.fastest].time, found.plans[plan.fastest ^ 1U].time);
    EXPECT_THAT(plan.measured, IsMeasured());
    EXPECT_THAT(plan.again, IsMeasured());
    EXPECT_GT(plan.predicted, Nanos{0});
  }
}

TEST_F(MeasuredPlansTest, WhereNothingIsPlannedByThemNothingElseRuns) {
  asked_.correct = [](const TimeModel&, std::size_t) {
    return Result<std::optional<Planned>>(std::optional<Planned>());
  };
  const MeasuredPlans found = measured();
  EXPECT_THAT(found.plans, Each(IsMeasured()));
  EXPECT_TRUE(found.corrected.empty());
}

TEST_F(MeasuredPlansTest, AnErrorOfThePlannerIsReturned) {
  asked_.correct = [](const TimeModel&, std::size_t) {
    return Result<std::optional<Planned>>(fail(ErrorCode::bad_input, "no"));
  };
  const auto found = measure_plans(job_, subject_->profile, asked_, std::nullopt, listener_);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().message, "no");
}

}  // namespace
}  // namespace tidepool::testing
