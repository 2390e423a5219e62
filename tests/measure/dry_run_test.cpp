// The host bytes a dry run names are what the real thing takes.
#include "measure/dry_run.h"

#include "ir/load_profile.h"
#include "measure/measure.h"
#include "measure/profiling_task.h"
#include "planning/budget.h"
#include "train/training_fixture.h"

namespace tidepool {
namespace {

class DryRunTest : public testing::TrainingTest {
 protected:
  void SetUp() override {
    TrainingTest::SetUp();
    job_ = std::make_unique<Job>(Job::make(tiny(100).job, listener_).value());
    machine_.set_alignment(job_->alignment());
    machine_.set_links({1e9, Nanos{0}}, {1e9, Nanos{0}});
    device_ = unlimited_peak(job_->program(), machine_.alignment()) * 3 / 5;
    algorithms_ = least_workspace_algorithms(job_->program());
  }
  Result<Measurement> measured(Bytes host) {
    const ProfilingTask task{.iterations = 1, .budget = {device_, host}};
    return measure(*job_, machine_, task, planned_measurement(*job_, machine_, task), listener_);
  }

  std::unique_ptr<Job> job_;
  Machine machine_;
  Bytes device_ = 0;
  AlgorithmChoice algorithms_;
};

TEST_F(DryRunTest, TheLeastHostBytesAreEnoughAndOneStepLessIsNot) {
  const Bytes least =
      least_host_bytes(job_->program(), algorithms_, device_, 64, machine_.alignment());
  EXPECT_LT(least, Reactive::enough_host_bytes(job_->program(), machine_.alignment()));
  EXPECT_TRUE(measured(least));
  const auto less = measured(least - machine_.alignment());
  ASSERT_FALSE(less);
  EXPECT_EQ(less.error().code, ErrorCode::infeasible);
  EXPECT_EQ(less.error().smallest_feasible, least);
  EXPECT_THAT(less.error().message, ::testing::HasSubstr("`host_budget`"));
}

TEST_F(DryRunTest, AmpleHostBytesAreEnoughAndNotAllThereCouldBe) {
  const Bytes ample = ample_host_bytes(job_->program(), algorithms_, device_, machine_.alignment());
  EXPECT_TRUE(runs_on_demand(job_->program(), algorithms_, {device_, ample}, machine_.alignment()));
  EXPECT_LT(ample, Reactive::enough_host_bytes(job_->program(), machine_.alignment()));
  testing::forget_opened();
  ASSERT_TRUE(measured(0)) << "no limit";
  for (const testing::OpenedArenas& a : testing::opened_devices()) EXPECT_LE(a.host, ample);
}

}  // namespace
}  // namespace tidepool
