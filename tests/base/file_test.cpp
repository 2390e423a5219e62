#include "base/file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "support/process.h"

namespace tidepool {
namespace {

using ::testing::HasSubstr;
using testing::TemporaryFolder;

std::size_t entries(const TemporaryFolder& folder) {
  return static_cast<std::size_t>(
      std::distance(std::filesystem::directory_iterator(folder.path()), {}));
}

TEST(ReadFile, AMissingFileIsBadInputWithTheReason) {
  const auto text = read_file("/nonexistent/x.json");
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().code, ErrorCode::bad_input);
  EXPECT_THAT(text.error().message, "/nonexistent/x.json: cannot open: No such file or directory");
}

TEST(ReadFile, AFolderIsBadInputWithTheReason) {
  const TemporaryFolder folder;
  const auto text = read_file(folder.file("."));
  ASSERT_FALSE(text);
  EXPECT_THAT(text.error().message, HasSubstr("Is a directory"));
}

TEST(WriteFile, WhatWasWrittenIsReadBackAndNoTemporaryFileStays) {
  const TemporaryFolder folder;
  std::string content("a\0b\n", 4);
  content.append(300'000, 'x');
  ASSERT_TRUE(write_file(folder.file("out"), content));
  EXPECT_EQ(*read_file(folder.file("out")), content);
  EXPECT_EQ(entries(folder), 1u);
}

TEST(WriteFile, AnOldFileIsReplaced) {
  const TemporaryFolder folder;
  ASSERT_TRUE(write_file(folder.file("out"), "a longer old text"));
  ASSERT_TRUE(write_file(folder.file("out"), "new"));
  EXPECT_EQ(*read_file(folder.file("out")), "new");
  EXPECT_EQ(entries(folder), 1u);
}

TEST(WriteFile, AMissingFolderIsARuntimeErrorWithTheReason) {
  const auto written = write_file("/nonexistent/folder/x", "text");
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, ErrorCode::runtime);
  EXPECT_THAT(written.error().message,
              "/nonexistent/folder/x: cannot create: No such file or directory");
}

TEST(WriteFile, AFolderAsTargetFailsAndLeavesNoTemporaryFile) {
  const TemporaryFolder folder;
  ASSERT_TRUE(std::filesystem::create_directory(folder.file("taken")));
  const auto written = write_file(folder.file("taken"), "text");
  ASSERT_FALSE(written);
  EXPECT_THAT(written.error().message, HasSubstr("rename"));
  EXPECT_EQ(entries(folder), 1u);
}

/// A limit on the size of files stands in for a full disk: the write stops in the middle.
TEST(WriteFile, AFullDiskKeepsTheOldFileAndLeavesNoTemporaryFile) {
  const TemporaryFolder folder;
  ASSERT_TRUE(write_file(folder.file("out"), "old"));
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small = before;
  small.rlim_cur = 4096;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto written = write_file(folder.file("out"), std::string(100'000, 'x'));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, ErrorCode::runtime);
  EXPECT_THAT(written.error().message, HasSubstr("cannot write: File too large"));
  EXPECT_EQ(*read_file(folder.file("out")), "old");
  EXPECT_EQ(entries(folder), 1u);
}

/// `-o /dev/null` and `-o /dev/stdout`: the rename must not put a file where the device was.
TEST(WriteFile, ATargetThatIsNoRegularFileIsNotReplacedByOne) {
  const TemporaryFolder folder;
  ASSERT_EQ(::mkfifo(folder.file("pipe").c_str(), 0600), 0);
  const int reader = ::open(folder.file("pipe").c_str(), O_RDWR | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  (void)write_file(folder.file("pipe"), "text");
  EXPECT_EQ(std::filesystem::status(folder.file("pipe")).type(), std::filesystem::file_type::fifo);
  EXPECT_EQ(entries(folder), 1u);
  ::close(reader);
}

}  // namespace
}  // namespace tidepool
