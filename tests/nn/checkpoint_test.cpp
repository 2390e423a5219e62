#include "nn/data/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "support/process.h"

namespace tidepool::nn {
namespace {

using ::testing::HasSubstr;

/// Pieces are of a megabyte: `large` takes two.
constexpr Bytes kLarge = kMiB + 3;

Checkpoint example(Bytes large = kLarge) {
  Checkpoint c;
  c.settings = {{"model", "vgg11"}, {"seed", "7"}};
  c.next_iteration = 42;
  c.tensors = {{"a", 3}, {"empty", 0}, {"large", large}};
  return c;
}

std::byte value_at(std::size_t tensor, Bytes offset) {
  return static_cast<std::byte>(7 * static_cast<Bytes>(tensor) + offset * 13 + offset / 1000);
}

std::string written(const Checkpoint& checkpoint) {
  std::string content;
  write_checkpoint(
      checkpoint,
      [](std::size_t tensor, Bytes offset, std::span<std::byte> to) {
        for (std::byte& b : to) b = value_at(tensor, offset++);
      },
      [&](std::string_view piece) {
        content += piece;
        return true;
      });
  return content;
}

class CheckpointFiles : public ::testing::Test {
 protected:
  Result<CheckpointFile> open(std::string_view content) {
    std::ofstream(path_, std::ios::binary) << content;
    return CheckpointFile::open(path_);
  }

  const tidepool::testing::TemporaryFolder folder_;
  const std::string path_ = folder_.file("some.ckpt");
};

TEST_F(CheckpointFiles, ReadsBackWhatWasWritten) {
  const auto back = open(written(example()));
  ASSERT_TRUE(back) << back.error().message;
  const Checkpoint& c = back->checkpoint();
  EXPECT_EQ(c.settings, example().settings);
  EXPECT_EQ(c.next_iteration, 42);
  EXPECT_EQ(c.setting("model"), "vgg11");
  EXPECT_EQ(c.setting("unknown"), "");
  ASSERT_EQ(c.tensors.size(), 3U);
  EXPECT_EQ(c.tensors[0].name, "a");
  for (std::size_t t = 0; t < c.tensors.size(); ++t) {
    Bytes next = 0;
    ASSERT_TRUE(back->read(t, [&](std::size_t of, Bytes offset, std::span<const std::byte> part) {
      EXPECT_EQ(of, t);
      ASSERT_EQ(offset, next);
      for (const std::byte b : part) ASSERT_EQ(b, value_at(t, next++));
    }));
    EXPECT_EQ(next, c.tensors[t].bytes);
  }
}

TEST_F(CheckpointFiles, StaysWhatItWasWhenAnotherIsRenamedOverIt) {
  const auto back = open(written(example()));
  ASSERT_TRUE(back);
  ASSERT_TRUE(write_file(path_, "another"));
  Bytes bytes = 0;
  ASSERT_TRUE(back->read(
      2, [&](std::size_t, Bytes, auto part) { bytes += static_cast<Bytes>(part.size()); }));
  EXPECT_EQ(bytes, kLarge);
}

TEST_F(CheckpointFiles, WhatTakesNoMoreIsGivenNoMore) {
  int pieces = 0;
  write_checkpoint(
      example(), [](std::size_t, Bytes, std::span<std::byte>) { FAIL() << "read in vain"; },
      [&](std::string_view) { return ++pieces < 1; });
  EXPECT_EQ(pieces, 1);
}

TEST_F(CheckpointFiles, EveryTruncationAndEveryFlippedByteIsRefusedByName) {
  const std::string content = written(example(5));
  for (std::size_t length = 0; length < content.size(); ++length) {
    const auto back = open(std::string_view(content).substr(0, length));
    ASSERT_FALSE(back) << length;
    EXPECT_EQ(back.error().code, ErrorCode::bad_input);
    EXPECT_THAT(back.error().message, HasSubstr("some.ckpt"));
  }
  for (std::size_t i = 0; i < content.size(); ++i) {
    std::string damaged = content;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    EXPECT_FALSE(open(damaged)) << i;
  }
}

TEST_F(CheckpointFiles, BytesAfterTheLastTensorAreRefused) {
  const auto back = open(written(example()) + "x");
  ASSERT_FALSE(back);
  EXPECT_THAT(back.error().message, HasSubstr("follow the last tensor"));
}

TEST_F(CheckpointFiles, AMissingFileAndAFolderAreBadInputWithTheReason) {
  const auto missing = CheckpointFile::open("/nonexistent/x.ckpt");
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message,
              "/nonexistent/x.ckpt: cannot open: No such file or directory");
  const auto folder = CheckpointFile::open(folder_.path());
  ASSERT_FALSE(folder);
  EXPECT_EQ(folder.error().code, ErrorCode::bad_input);
  EXPECT_THAT(folder.error().message, HasSubstr("Is a directory"));
}

}  // namespace
}  // namespace tidepool::nn
