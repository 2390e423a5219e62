// Models of the zoo through a Session: the same bits, inside the budget, soon on a plan.
#include "train/transparent.h"

#include "train/training_fixture.h"

namespace tidepool {
namespace {

using ::testing::HasSubstr;

class TransparentTest : public testing::TrainingTest {
 protected:
  static TrainingSpec spec_of(const char* model, std::int64_t batch, double percent) {
    TrainingSpec spec = tiny(percent);
    spec.job.model = model;
    spec.job.batch = batch;
    spec.job.device.link = 2'000'000'000;
    spec.planner.evaluations = 50;
    spec.iterations = 5;
    spec.comparison = Comparison::bits;
    return spec;
  }

  TransparentReport trained(const TrainingSpec& spec) {
    const auto report = run_transparently(spec, listener_);
    EXPECT_TRUE(report) << report.error().message;
    if (!report) return {};
    EXPECT_TRUE(report->baseline && report->baseline->identical == true);
    EXPECT_GT(report->session.device_peak, 0);
    EXPECT_LE(report->session.device_peak, report->budget);
    EXPECT_EQ(std::ssize(report->losses), spec.iterations);
    EXPECT_EQ(report->iterations, spec.iterations);
    return *report;
  }

  void expect_planned(const char* model, std::int64_t batch,
                      std::initializer_list<double> percents) {
    for (const double percent : percents) {
      SCOPED_TRACE(percent);
      const TransparentReport report = trained(spec_of(model, batch, percent));
      EXPECT_EQ(report.first_planned, 4) << report.session.why_no_plan;
      EXPECT_EQ(report.planned_iterations, 2);
      EXPECT_EQ(report.session.left_plans, 0);
      EXPECT_LT(report.budget, report.unlimited_peak);
      EXPECT_GT(report.session.moved, 0);
      EXPECT_GT(report.planned.count, 0U);
      EXPECT_GT(report.unplanned.count(), 0);
      EXPECT_GT(report.session.predicted.count(), 0);
    }
  }
};

/// Of a network that is deep, and of small ones in more budgets.
TEST_F(TransparentTest, ResNetIsIdenticalAndPlanned) {
  expect_planned("resnet18-cifar", 2, {60});
  expect_planned("tiny-resnet", 32, {75, 50});
}
TEST_F(TransparentTest, VggIsIdenticalAndPlanned) { expect_planned("tiny-vgg", 64, {75, 60, 50}); }
TEST_F(TransparentTest, TransformerIsIdenticalAndPlanned) {
  expect_planned("transformer", 2, {75, 50});
}
TEST_F(TransparentTest, UNetIsIdenticalAndPlanned) { expect_planned("tiny-unet", 8, {75, 60, 50}); }

/// On the thread that calls, kernels sum in as many parts as on the device's own.
TEST_F(TransparentTest, SeveralThreadsGiveTheSameBits) {
  TrainingSpec spec = spec_of("tiny-vgg", 32, 60);
  spec.job.device.threads = 2;
  EXPECT_EQ(trained(spec).threads, 2);
}

TEST_F(TransparentTest, RoundsArePartsOfOneIteration) {
  TrainingSpec spec = spec_of("tiny-vgg-plain", 32, 70);
  spec.job.sub_batch = 8;
  EXPECT_EQ(trained(spec).planned_iterations, 2);
}

TEST_F(TransparentTest, SkippedBranchesLeaveThePlanAndNoBitChanges) {
  TrainingSpec spec = spec_of("tiny-resnet-sd", 16, 70);
  spec.iterations = 20;
  trained(spec);
}

TEST_F(TransparentTest, OpensNoMoreThanItsBudgets) {
  TrainingSpec spec = spec_of("tiny-vgg", 32, 60);
  spec.comparison = Comparison::none;
  spec.budget.host = 16 * kMiB;
  const auto report = run_transparently(spec, listener_);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_FALSE(report->baseline);
  EXPECT_LE(largest_arena(), report->budget);
  for (const auto& opened : testing::opened_devices()) EXPECT_LE(opened.host, spec.budget.host);
}

TEST_F(TransparentTest, ABudgetThatNoOpFitsIsInfeasible) {
  const auto report = run_transparently(spec_of("tiny-vgg", 32, 3), listener_);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, ErrorCode::infeasible);
}

/// The last iteration before it is one after which it plans, which ends at once.
TEST_F(TransparentTest, StopsAndSaysHowFarItWas) {
  for (const std::int64_t iterations : {1, 3, 4}) {
    testing::Listener impatient;
    impatient.stop_after = iterations;
    TrainingSpec spec = spec_of("tiny-vgg", 32, 60);
    spec.planner.evaluations = 0;
    spec.planner.time_limit = std::chrono::minutes(10);
    if (iterations == 4) spec.planner.name = "autoswap";
    const auto report = run_transparently(spec, impatient);
    ASSERT_FALSE(report);
    EXPECT_EQ(report.error().code, ErrorCode::interrupted);
    EXPECT_THAT(report.error().message,
                HasSubstr("interrupted after " + std::to_string(iterations) + " iteration"));
    EXPECT_EQ(impatient.nesting, 0);
  }
}

TEST_F(TransparentTest, WhatMeansNothingHereIsRefused) {
  const auto expect_refused = [&](const char* field, const auto& change) {
    SCOPED_TRACE(field);
    TrainingSpec spec = spec_of("tiny-vgg", 32, 60);
    change(spec);
    const auto report = run_transparently(spec, listener_);
    ASSERT_FALSE(report);
    EXPECT_EQ(report.error().code, ErrorCode::usage);
    EXPECT_THAT(report.error().message, HasSubstr("`transparent`"));
    EXPECT_THAT(report.error().message, HasSubstr("`" + std::string(field) + "`"));
  };
  expect_refused("budget", [](TrainingSpec& s) { s.budget.device = {.bytes = kNoDeviceLimit}; });
  expect_refused("plan", [](TrainingSpec& s) { s.plan = "x.plan.json"; });
  expect_refused("profile", [](TrainingSpec& s) { s.profile = "x.profile.json"; });
  expect_refused("graph", [](TrainingSpec& s) { s.graph = 2; });
  expect_refused("devices", [](TrainingSpec& s) { s.job.devices = 2; });
  expect_refused("sub_batch", [](TrainingSpec& s) { s.job.choose_sub_batch = true; });
  expect_refused("algorithms", [](TrainingSpec& s) { s.job.choose_algorithms = true; });
  expect_refused("algorithms",
                 [](TrainingSpec& s) { s.job.algorithms = AlgorithmPolicy::fastest; });
  expect_refused("epochs", [](TrainingSpec& s) { s.epochs = 1; });
  expect_refused("file_tier", [](TrainingSpec& s) { s.job.device.file_tier.folder = "."; });
}

}  // namespace
}  // namespace tidepool
