// A job's texts: what checkpoints keep has to be read back as it was.
#include "job/job.h"

#include "job/job_spec.h"
#include "train/training_fixture.h"

namespace tidepool {
namespace {

TEST(LearningRateText, IsReadBackAsItWas) {
  for (const char* text :
       {"0.02", "0.1", "1e-05", "step:0.1,30,60", "step:0.1,30,60,gamma=0.2", "cosine:0.1",
        "cosine:0.1,epochs=90", "warmup:5+cosine:0.1", "warmup:0.5+step:0.3,1.5,2,gamma=0.5"}) {
    const auto rate = nn::parse_learning_rate(text);
    ASSERT_TRUE(rate) << text;
    EXPECT_EQ(to_text(*rate), text);
    const auto again = nn::parse_learning_rate(to_text(*rate));
    ASSERT_TRUE(again) << to_text(*rate);
    EXPECT_EQ(*again, *rate) << text;
  }
}

class JobTest : public testing::TrainingTest {};

TEST_F(JobTest, UnknownNamesAreUsageErrorsThatOfferTheNearest) {
  JobSpec spec = tiny(100).job;
  spec.data.name = "fashion-minst";
  const auto job = Job::make(spec, listener_);
  ASSERT_FALSE(job);
  EXPECT_EQ(job.error().code, ErrorCode::usage);
  EXPECT_THAT(job.error().message, ::testing::HasSubstr("did you mean 'fashion-mnist'?"));
}

TEST_F(JobTest, AModelOfPixelsRefusesDataWithoutMasks) {
  JobSpec spec = tiny(100).job;
  spec.model = "tiny-unet";
  spec.batch = 4;
  ASSERT_TRUE(Job::make(spec, listener_));
  spec.data.name = "cifar10";
  const auto job = Job::make(spec, listener_);
  ASSERT_FALSE(job);
  EXPECT_EQ(job.error().code, ErrorCode::usage);
  EXPECT_THAT(job.error().message,
              ::testing::HasSubstr("tiny-unet takes one for each pixel: use `data` fashion-mnist"));
}

// A checkpoint of another sequence may have weights of the same shapes.
TEST_F(JobTest, TheSequenceIsPartOfWhatACheckpointMustAgreeOn) {
  JobSpec spec = tiny(100).job;
  spec.model = "tiny-gpt";
  spec.batch = 4;
  spec.sequence = 5;
  const auto job = Job::make(spec, listener_);
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_THAT(job->settings(),
              ::testing::Contains(std::pair<std::string, std::string>("sequence", "5")));
  spec.model = "tiny-vgg";
  spec.sequence = 0;
  const auto images = Job::make(spec, listener_);
  ASSERT_TRUE(images);
  for (const auto& [name, value] : images->settings()) EXPECT_NE(name, "sequence");
}

TEST_F(JobTest, MoreThreadsThanCoresAreNoticed) {
  JobSpec spec = tiny(100).job;
  spec.device.threads = 1000;
  ASSERT_TRUE(Job::make(spec, listener_));
  ASSERT_EQ(listener_.notices.size(), 1U);
  EXPECT_EQ(listener_.notices[0].first, Notice::too_many_threads);
}

TEST_F(JobTest, MakingADeviceTakesNoMemoryYet) {
  const auto job = Job::make(tiny(100).job, listener_);
  ASSERT_TRUE(job);
  EXPECT_GT(job->alignment(), 0);
  EXPECT_THAT(testing::opened_devices(), ::testing::IsEmpty());
}

}  // namespace
}  // namespace tidepool
