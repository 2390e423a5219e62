#include "train/link_speed.h"

#include "ir/load_profile.h"
#include "train/training_fixture.h"

namespace tidepool {
namespace {

class LinkSpeedTest : public testing::TrainingTest {};

/// In rounds the reference's batch norm takes other statistics, which nobody allowed: on a machine
/// without a cache, trainings in less than 50 MiB ended with an error about VGG16.
TEST_F(LinkSpeedTest, TheReferenceFitsBudgetsThatItsWholeBatchDoesNot) {
  const auto job = Job::make(tiny(50).job, listener_);
  ASSERT_TRUE(job) << job.error().message;
  for (const Bytes budget : {80 * kMiB, 40 * kMiB}) {
    const auto reference = reference_job(*job, budget, job->alignment(), listener_);
    ASSERT_TRUE(reference) << reference.error().message;
    EXPECT_EQ(reference->spec().sub_batch < reference->spec().batch, budget < 50 * kMiB);
    EXPECT_LE(smallest_budget(reference->program(), job->alignment()).bytes, budget);
  }
}

}  // namespace
}  // namespace tidepool
