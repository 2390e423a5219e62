#include "measure/link_speed.h"

#include <cmath>
#include <filesystem>

#include "planning/planning_spec.h"
#include "train/training_fixture.h"

namespace tidepool {
namespace {

using ::testing::HasSubstr;

class LinkSpeedTest : public testing::TrainingTest {
 protected:
  Result<ReferenceTime> reference(Bytes device, Bytes host = 0, const CacheSpec& cache = {}) {
    auto job = Job::make(tiny(50).job, listener_);
    if (!job) return fail(job.error());
    return reference_time(*job, {device, host}, cache, listener_);
  }
  [[nodiscard]] bool kept() const {
    std::error_code none;
    const std::filesystem::directory_iterator files(folder_.path() / "cache/tidepool", none);
    return std::any_of(begin(files), end(files), [](const auto& file) {
      return file.path().filename().string().starts_with("reference-");
    });
  }
  static constexpr CacheSpec kOff{.off = true};
  static constexpr CacheSpec kRenew{.reprofile = true};
};

/// The reference was VGG16 in rounds: refused for its batch norm, and below what one sample takes
/// it ran outside the budget.
TEST_F(LinkSpeedTest, NoArenaIsLargerThanTheBudget) {
  for (const Bytes budget : {2 * kMiB, 256 * kKiB, 160 * kKiB}) {
    testing::forget_opened();
    const auto time = reference(budget, 0, kOff);
    ASSERT_TRUE(time) << time.error().message;
    EXPECT_THAT(time->measured, HasSubstr("tiny-vgg"));
    EXPECT_GT(largest_arena(), 0);
    EXPECT_LE(largest_arena(), budget);
  }
}

TEST_F(LinkSpeedTest, AHostBudgetTooSmallForVgg16TakesTheSmallNetwork) {
  const auto time = reference(40 * kMiB, 8 * kMiB, kOff);
  ASSERT_TRUE(time) << time.error().message;
  EXPECT_THAT(time->measured, HasSubstr("tiny-vgg"));
  for (const auto& opened : testing::opened_devices()) EXPECT_LE(opened.host, 8 * kMiB);
}

TEST_F(LinkSpeedTest, ABudgetForNoneOfThemSaysWhatToDo) {
  const auto time = reference(50 * kKiB, 0, kOff);
  ASSERT_FALSE(time);
  EXPECT_EQ(time.error().code, ErrorCode::infeasible);
  EXPECT_THAT(time.error().message, HasSubstr("give the `link`"));
}

/// One machine has one link: what is known holds for every budget until it is measured anew.
TEST_F(LinkSpeedTest, IsMeasuredOnceAndKept) {
  const auto none = reference(kMiB, 0, kOff);
  ASSERT_TRUE(none);
  EXPECT_FALSE(kept());
  const auto first = reference(kMiB);
  ASSERT_TRUE(first);
  EXPECT_TRUE(kept());
  const auto again = reference(200 * kMiB);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->iteration, first->iteration);
  EXPECT_EQ(again->measured, first->measured);
  const auto off = reference(kMiB, 0, kOff);
  ASSERT_TRUE(off);
  EXPECT_NE(off->iteration, first->iteration);
  const auto renewed = reference(kMiB, 0, kRenew);
  ASSERT_TRUE(renewed);
  EXPECT_NE(renewed->iteration, first->iteration);
  EXPECT_EQ(reference(kMiB)->iteration, renewed->iteration);
}

TEST_F(LinkSpeedTest, SaysWhatTheLinkFollowsFrom) {
  auto spec = tiny(50).job;
  spec.device.link = 0;
  const auto job = Job::make(spec, listener_);
  ASSERT_TRUE(job);
  const auto machine = device_machine(*job, {4 * kMiB, 0}, kOff, listener_);
  ASSERT_TRUE(machine) << machine.error().message;
  ASSERT_FALSE(listener_.notices.empty());
  EXPECT_EQ(listener_.notices.back().first, Notice::link_from_reference);
  EXPECT_THAT(listener_.notices.back().second, HasSubstr("tiny-vgg at batch 100"));
}

}  // namespace
}  // namespace tidepool
