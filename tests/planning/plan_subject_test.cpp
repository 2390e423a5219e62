#include "planning/plan_subject.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/json.h"
#include "cost/spill.h"
#include "support/attacks.h"
#include "support/swap_programs.h"

namespace tidepool {
namespace {

using ::testing::HasSubstr;
using testing::mib;

class PlanSubject : public ::testing::Test {
 protected:
  PlanSubject() {
    subject_.profile = {"here", testing::SwapExample().program, testing::two_mib_a_ms()};
    task_.planner.name = "autoswap";
    task_.planner.evaluations = 50;
  }

  Result<SubjectPlan> plan(Bytes device) {
    return plan_subject(subject_, {device, 0}, task_, nowhere_, nobody_);
  }

  static std::string text_of(const SubjectPlan& plan) { return to_json(plan_file(plan)).dump(); }

  static SavedPlan saved(const SubjectPlan& plan) {
    const std::string path = ::testing::TempDir() + "plan_subject_test.plan.json";
    EXPECT_TRUE(write_file(path, text_of(plan)));
    auto read = read_saved_plan(path);
    EXPECT_TRUE(read) << read.error().message;
    return std::move(*read);
  }

  Observer nobody_;
  Cache nowhere_{{.off = true}, nobody_};
  Subject subject_;
  PlanTask task_;
};

TEST_F(PlanSubject, IsThePlanOfThePlannerWithItsTimesAndItsGap) {
  auto made = plan(mib(100));
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->obtained.from, "planner");
  EXPECT_LE(made->running().device_bytes(), mib(100));
  EXPECT_EQ(made->profile.program.name, subject_.profile.program.name);
  EXPECT_FALSE(made->rounds.chosen);
  EXPECT_GE(made->overhead(), 0);
  ASSERT_TRUE(prove_gap(task_, *made, nobody_));
  ASSERT_TRUE(made->gap.gap);
  EXPECT_GE(*made->gap.gap, 0);
}

TEST_F(PlanSubject, RunsASavedPlanInsteadOfPlanning) {
  const auto made = plan(mib(100));
  ASSERT_TRUE(made);
  const SavedPlan file = saved(*made);
  task_.planner.name = "none";  // has no plan in this budget
  task_.saved = &file;
  const auto again = plan(mib(100));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->obtained.from, "file");
  EXPECT_EQ(text_of(*again), text_of(*made));
  const auto smaller = plan(made->running().device_bytes() - 512);
  ASSERT_FALSE(smaller);
  EXPECT_EQ(smaller.error().code, ErrorCode::infeasible);
  EXPECT_THAT(smaller.error().message, HasSubstr(file.path));
}

TEST_F(PlanSubject, ASavedPlanOfAnotherDeviceOrProgramIsRefused) {
  const auto made = plan(mib(100));
  ASSERT_TRUE(made);
  const SavedPlan file = saved(*made);
  task_.saved = &file;
  subject_.profile.fingerprint = "there";
  EXPECT_EQ(plan(mib(100)).error().code, ErrorCode::bad_input);
  subject_.profile.fingerprint = "here";
  subject_.profile.program.tensors[0].bytes += 512;
  EXPECT_THAT(plan(mib(100)).error().message, HasSubstr("another program"));
}

/// Searches by evaluations ask no clock: the least host budget they name is the same each time, and
/// enough when it is given, with a file behind the host and without one.
TEST_F(PlanSubject, ALeastHostBudgetByEvaluationsRepeatsAndIsEnough) {
  const LinkSpeed disk{1e9, Nanos{100}};
  const Machine two = subject_.profile.machine;
  const Machine three = with_file_tier(two, {disk, disk, false, 0, two.alignment()});
  const auto in_host = [&](Bytes host) {
    return plan_subject(subject_, {mib(70), host}, task_, nowhere_, nobody_);
  };
  for (const char* planner : {"autoswap", "tide"}) {
    for (const Machine& machine : {two, three}) {
      // Each of both once.
      const bool usual = (machine.behind_host() == kNone) == (planner == std::string("tide"));
      if (!usual && !testing::thorough()) continue;
      SCOPED_TRACE(std::string(planner) + (machine.behind_host() == kNone ? "" : " over a file"));
      task_.planner.name = planner;
      task_.planner.evaluations = 10;
      subject_.profile.machine = machine;
      const auto refused = in_host(1024);
      ASSERT_FALSE(refused);
      EXPECT_TRUE(refused.error().of_host);
      ASSERT_TRUE(refused.error().smallest_feasible) << refused.error().message;
      EXPECT_EQ(in_host(1024).error().message, refused.error().message);
      const auto made = in_host(*refused.error().smallest_feasible);
      ASSERT_TRUE(made) << made.error().message;
      EXPECT_LE(made->running().host_bytes(), *refused.error().smallest_feasible);
    }
  }
}

TEST_F(PlanSubject, EveryOpRunsWhatAChoiceSays) {
  Op& op = subject_.profile.program.ops[3];
  op.algorithms.push_back(op.algorithms[0]);
  op.algorithms[1].name = "slow";
  op.algorithms[1].time *= 2;
  AlgorithmChoice choice(subject_.profile.program.ops.size(), 0);
  choice[3] = 1;
  task_.choice = choice;
  const auto made = plan(mib(100));
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(chosen_algorithms(made->profile.program, made->running()), choice);
}

TEST_F(PlanSubject, ResidentBytesAreInBudgetsAndErrorsButNotInPlans) {
  const Bytes resident = mib(7);
  const Bytes without = subject_.unlimited_peak();
  subject_.resident = resident;
  EXPECT_EQ(subject_.unlimited_peak(), without + resident);
  const auto budget = budget_for(subject_, {.device = {.bytes = mib(107)}}, "autoswap");
  ASSERT_TRUE(budget);
  EXPECT_EQ(budget->device, mib(100));
  const auto refused = budget_for(subject_, {.device = {.bytes = mib(8)}}, "autoswap");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("resident"));
  ASSERT_TRUE(refused.error().smallest_feasible);
  EXPECT_TRUE(
      budget_for(subject_, {.device = {.bytes = *refused.error().smallest_feasible}}, "autoswap"));
}

TEST_F(PlanSubject, WhatIsStoppedHasThePlanUntilThenAndNoGap) {
  class Stopped : public Observer {
   public:
    [[nodiscard]] bool stop_requested() const override { return true; }
  } stopped;
  task_.planner.name = "tide";
  auto made = plan_subject(subject_, {mib(100), 0}, task_, nowhere_, stopped);
  if (!made) {
    EXPECT_EQ(made.error().code, ErrorCode::interrupted);
    return;
  }
  EXPECT_TRUE(made->stopped);
  ASSERT_TRUE(prove_gap(task_, *made, stopped));
  EXPECT_EQ(made->gap.unknown, "interrupted");
}

}  // namespace
}  // namespace tidepool
