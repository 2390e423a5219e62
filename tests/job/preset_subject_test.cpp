#include "job/preset_subject.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planning/plan_subject.h"

namespace tidepool {
namespace {

class PresetSubject : public ::testing::Test {
 protected:
  PresetSubject() {
    job_.model = "tiny-vgg-plain";
    job_.batch = 64;
    task_.planner.name = "autoswap";
    task_.planner.evaluations = 20;
  }

  Result<SubjectPlan> plan(Subject& subject, double percent) {
    const auto budget = budget_for(subject, {.device = {.percent = percent}}, task_.planner.name);
    if (!budget) return fail(budget.error());
    return plan_subject(subject, *budget, task_, nowhere_, nobody_);
  }

  JobSpec job_;
  PlanTask task_;
  Observer nobody_;
  Cache nowhere_{{.off = true}, nobody_};
};

TEST_F(PresetSubject, ThePlanOfSeveralDevicesIsInsideTheBudgetOfEach) {
  job_.devices = 2;
  auto subject = subject_on_preset(job_, "gtx1080ti", false);
  ASSERT_TRUE(subject) << subject.error().message;
  ASSERT_TRUE(subject->devices);
  EXPECT_EQ(subject->devices->machine.devices(), 2);
  EXPECT_EQ(subject->profile.machine.devices(), 1);
  EXPECT_TRUE(subject->devices->alone);
  const auto made = plan(*subject, 70);
  ASSERT_TRUE(made) << made.error().message;
  ASSERT_TRUE(made->parallel);
  EXPECT_LE(largest_device(made->running()), made->budget.device);
  EXPECT_EQ(made->gap.unknown, kNoGapOfSeveral);
}

TEST_F(PresetSubject, APlannerThatChoosesRoundsLeavesTheDevicesInThem) {
  job_.devices = 2;
  job_.choose_sub_batch = true;
  auto subject = subject_on_preset(job_, "gtx1080ti", false);
  ASSERT_TRUE(subject) << subject.error().message;
  ASSERT_FALSE(subject->offered.empty());
  const auto made = plan(*subject, 30);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_TRUE(made->rounds.chosen);
  EXPECT_LT(made->rounds.sub_batch, 32);
  EXPECT_EQ(made->profile.program.sub_batch, made->rounds.sub_batch);
  EXPECT_EQ(subject->devices->program->whole.sub_batch, made->rounds.sub_batch);
}

TEST_F(PresetSubject, BatchNormKeepsTheWholeBatchAndSaysSo) {
  job_.model = "tiny-vgg";
  job_.choose_sub_batch = true;
  auto subject = subject_on_preset(job_, "gtx1080ti", false);
  ASSERT_TRUE(subject);
  EXPECT_TRUE(subject->offered.empty());
  const auto made = plan(*subject, 70);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_TRUE(made->rounds.kept_whole);
}

}  // namespace
}  // namespace tidepool
