#include "nn/learning_rate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace tidepool::nn {
namespace {

using ::testing::HasSubstr;

constexpr TrainingLength kLength{10, 1000};  // 100 epochs of 10 iterations

float rate(std::string_view text, std::int64_t iteration) {
  const auto parsed = parse_learning_rate(text);
  EXPECT_TRUE(parsed) << parsed.error().message;
  return parsed->at(iteration, kLength);
}

TEST(LearningRate, ConstantStays) {
  EXPECT_EQ(rate("0.1", 0), 0.1F);
  EXPECT_EQ(rate("1e-3", 999), 0.001F);
}

TEST(LearningRate, StepFallsAtItsMilestones) {
  EXPECT_FLOAT_EQ(rate("step:0.2,30,60,gamma=0.5", 0), 0.2F);
  EXPECT_FLOAT_EQ(rate("step:0.2,30,60,gamma=0.5", 299), 0.2F);
  EXPECT_FLOAT_EQ(rate("step:0.2,30,60,gamma=0.5", 300), 0.1F);
  EXPECT_FLOAT_EQ(rate("step:0.2,30,60,gamma=0.5", 600), 0.05F);
  EXPECT_FLOAT_EQ(rate("step:0.2,2.5", 24), 0.2F);
  EXPECT_FLOAT_EQ(rate("step:0.2,2.5", 25), 0.02F);
  EXPECT_EQ(*parse_learning_rate("step:0.2,gamma=0.5,30"),
            *parse_learning_rate("step:0.2,30,gamma=0.5"));
}

TEST(LearningRate, CosineEndsAtZeroWithTheTraining) {
  EXPECT_FLOAT_EQ(rate("cosine:0.1", 0), 0.1F);
  EXPECT_FLOAT_EQ(rate("cosine:0.1", 500), 0.05F);
  EXPECT_FLOAT_EQ(rate("cosine:0.1", 250), static_cast<float>(0.05 * (1 + std::sqrt(0.5))));
  EXPECT_GT(rate("cosine:0.1", 999), 0);
  EXPECT_EQ(rate("cosine:0.1", 1000), 0);
  EXPECT_EQ(rate("cosine:0.1", 2000), 0);
  EXPECT_FLOAT_EQ(rate("cosine:0.1,epochs=10", 50), 0.05F);
}

TEST(LearningRate, WarmupRisesLinearlyToWhateverFollows) {
  EXPECT_FLOAT_EQ(rate("warmup:5+0.1", 0), 0.1F / 50);
  EXPECT_FLOAT_EQ(rate("warmup:5+0.1", 24), 0.05F);
  EXPECT_FLOAT_EQ(rate("warmup:5+0.1", 49), 0.1F);
  EXPECT_FLOAT_EQ(rate("warmup:5+0.1", 50), 0.1F);
  EXPECT_FLOAT_EQ(rate("warmup:5+step:0.1,2", 24), 0.005F);
  EXPECT_EQ(rate("warmup:5+cosine:0.1", 400), rate("cosine:0.1", 400));
  EXPECT_EQ(rate("warmup:0.05+0.1", 0), 0.1F);
}

struct BadText {
  const char* text;
  const char* message;
};

TEST(LearningRate, SaysWhatWouldBeRight) {
  for (const BadText& bad : {
           BadText{"", "'' is not a positive number; write 0.1, step:0.1,30,60,gamma=0.1"},
           BadText{"fast", "'fast' is not a positive number"},
           BadText{"-0.1", "'-0.1' is not a positive number"},
           BadText{"0.1x", "'0.1x' is not a positive number"},
           BadText{"inf", "'inf' is not a positive number"},
           BadText{"0.1,30", "'0.1,30' is not a schedule"},
           BadText{"poly:0.1", "'poly:0.1' is not a schedule; write 0.1, step:"},
           BadText{"step:0.1", "step needs at least one milestone in epochs, as in step:0.1,30,60"},
           BadText{"step:0.1,60,30", "milestone 30 does not come after 60"},
           BadText{"step:0.1,30,", "there is nothing after the last comma"},
           BadText{"step:0.1,30,gamma=", "'' is not a positive number"},
           BadText{"step:0.1,30,beta=2", "'beta=2' is not a positive number of epochs"},
           BadText{"step:,30", "'' is not a positive number"},
           BadText{"cosine:0.1,90", "write cosine:0.1 or cosine:0.1,epochs=90"},
           BadText{"cosine:0.1,epochs=0", "'0' is not a positive number"},
           BadText{"warmup:5", "needs a schedule to lead to, as in warmup:5+cosine:0.1"},
           BadText{"warmup:x+0.1", "'x' is not a positive number of epochs"},
           BadText{"warmup:5+", "'' is not a positive number"},
           BadText{"warmup:5+warmup:5+0.1", "one warm-up is enough"},
       }) {
    const auto parsed = parse_learning_rate(bad.text);
    ASSERT_FALSE(parsed) << bad.text;
    EXPECT_EQ(parsed.error().code, ErrorCode::usage);
    EXPECT_THAT(parsed.error().message, HasSubstr(bad.message));
    EXPECT_THAT(parsed.error().message, HasSubstr("learning rate '" + std::string(bad.text) + "'"));
  }
}

}  // namespace
}  // namespace tidepool::nn
