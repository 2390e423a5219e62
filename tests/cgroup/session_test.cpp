// A Session with a file behind it in a control group that allows no more memory and no swap.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/disks.h"
#include "support/memory_group.h"

namespace tidepool {
namespace {

using ::testing::StartsWith;

TEST(SessionInAGroup, TrainsInLessThanItsBlocksTake) {
  // The blocks take 104 MiB at the same time.
  const testing::MemoryGroup group(72 * kMiB);
  if (!group.why_not().empty()) GTEST_SKIP() << group.why_not();
  const testing::Finished whole = testing::run_process({TIDEPOOL_SESSION_IN_GROUP, "-", "0"});
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  EXPECT_NE(group.run({TIDEPOOL_SESSION_IN_GROUP, "-", "0"}).exit_code, 0);
  const testing::MemoryGroup another(72 * kMiB);
  const testing::Finished done = another.run(
      {TIDEPOOL_SESSION_IN_GROUP, std::filesystem::current_path(), std::to_string(44 * kMiB)});
  EXPECT_EQ(done.exit_code, 0) << done.out << done.err;
  EXPECT_THAT(done.out, StartsWith(whole.out));
  EXPECT_EQ(another.killed(), 0);
  EXPECT_LE(another.highest(), another.limit());
}

}  // namespace
}  // namespace tidepool
