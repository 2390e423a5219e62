#include "base/file_lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "base/file.h"
#include "support/process.h"

namespace tidepool {
namespace {

using ::testing::HasSubstr;
using testing::TemporaryFolder;

TEST(FileLock, IsHeldOnceAndLeavesNothing) {
  const TemporaryFolder folder;
  const std::string path = folder.file("keep.ckpt");
  {
    auto first = FileLock::take(path);
    ASSERT_TRUE(first) << first.error().message;
    EXPECT_TRUE(first->held());
    const FileLock moved = std::move(*first);
    const auto second = FileLock::take(path);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, ErrorCode::runtime);
    EXPECT_THAT(second.error().message,
                HasSubstr(path + ": process " + std::to_string(::getpid()) + " writes to it"));
    EXPECT_TRUE(FileLock::take(folder.file("other.ckpt"))) << "another name is another lock";
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  EXPECT_TRUE(FileLock::take(path));
}

TEST(FileLock, OneThatAProcessLeftBehindIsTaken) {
  const TemporaryFolder folder;
  const std::string path = folder.file("keep.ckpt");
  ASSERT_TRUE(write_file(path + ".lock", "tidepool, process 1\n"));
  const auto lock = FileLock::take(path);
  ASSERT_TRUE(lock) << lock.error().message;
  EXPECT_TRUE(lock->held());
}

TEST(FileLock, AFileOfItsNameThatIsNoneStays) {
  const TemporaryFolder folder;
  const std::string path = folder.file("keep.ckpt");
  ASSERT_TRUE(write_file(path + ".lock", "years of work"));
  const auto lock = FileLock::take(path);
  ASSERT_FALSE(lock);
  EXPECT_THAT(lock.error().message, HasSubstr("exists and is no lock"));
  EXPECT_EQ(testing::content_of(path + ".lock"), "years of work");
}

TEST(FileLock, APipeOfItsNameStays) {
  const TemporaryFolder folder;
  const std::string path = folder.file("keep.ckpt");
  ASSERT_EQ(::mkfifo((path + ".lock").c_str(), 0600), 0);
  const auto lock = FileLock::take(path);
  ASSERT_FALSE(lock);
  EXPECT_THAT(lock.error().message, HasSubstr("exists and is no lock"));
  EXPECT_TRUE(std::filesystem::is_fifo(path + ".lock"));
}

}  // namespace
}  // namespace tidepool
