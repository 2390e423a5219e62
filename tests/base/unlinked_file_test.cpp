#include "base/unlinked_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/statvfs.h>

#include <csignal>
#include <filesystem>
#include <vector>

#include "support/process.h"

namespace tidepool {
namespace {

using ::testing::HasSubstr;
using testing::TemporaryFolder;

std::vector<std::byte> counted_bytes(std::size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 251);
  return bytes;
}

TEST(UnlinkedFile, ReadsBackWhatWasWrittenAndHasNoName) {
  const TemporaryFolder folder;
  auto file = UnlinkedFile::create(folder.path());
  ASSERT_TRUE(file) << file.error().message;
  const auto bytes = counted_bytes(9'000'001);  // two pieces and an odd rest
  ASSERT_TRUE(file->write(4096, bytes));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  const UnlinkedFile moved = std::move(*file);
  std::vector<std::byte> back(bytes.size());
  ASSERT_TRUE(moved.read(4096, back));
  EXPECT_TRUE(back == bytes);
  std::vector<std::byte> part(10);
  ASSERT_TRUE(moved.read(4096 + 8'388'600, part));
  EXPECT_TRUE(std::equal(part.begin(), part.end(), bytes.begin() + 8'388'600));
}

TEST(UnlinkedFile, WhereItEndsAndWhereThereIsNoneIsSaid) {
  const TemporaryFolder folder;
  const auto file = UnlinkedFile::create(folder.path());
  ASSERT_TRUE(file);
  std::vector<std::byte> to(10);
  const auto read = file->read(0, to);
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().message, HasSubstr("cannot read 10 B at 0 of a file there"));
  const auto none = UnlinkedFile::create("/nonexistent/folder");
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, HasSubstr("/nonexistent/folder: cannot make a file there"));
}

/// Regression: a disk that was full when training ended lost all of it.
TEST(UnlinkedFile, MoreThanIsFreeIsRefusedBeforeAnythingIsWritten) {
  const TemporaryFolder folder;
  auto file = UnlinkedFile::create(folder.path());
  ASSERT_TRUE(file);
  EXPECT_TRUE(file->reserve(1'000'000));
  const auto refused = file->reserve(Bytes{1} << 60);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::infeasible);
  EXPECT_THAT(refused.error().message, HasSubstr("the disk is too small"));
  EXPECT_TRUE(file->write(0, counted_bytes(10)));
}

TEST(UnlinkedFile, AFailedWriteIsAnError) {
  const TemporaryFolder folder;
  auto file = UnlinkedFile::create(folder.path());
  ASSERT_TRUE(file);
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small = before;
  small.rlim_cur = 8192;
  ::setrlimit(RLIMIT_FSIZE, &small);
  const auto written = file->write(4096, counted_bytes(10'000));
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  ASSERT_FALSE(written);
  EXPECT_THAT(written.error().message, HasSubstr("File too large"));
}

}  // namespace
}  // namespace tidepool
