#include "nn/data/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tidepool::nn {
namespace {

using ::testing::HasSubstr;

Checkpoint example() {
  Checkpoint c;
  c.settings = {{"model", "vgg11"}, {"seed", "7"}};
  c.next_iteration = 42;
  c.tensors = {{"a", {std::byte{1}, std::byte{2}, std::byte{3}}}, {"empty", {}}};
  return c;
}

TEST(Checkpoint, ReadsBackWhatWasWritten) {
  const auto back = read_checkpoint(serialize(example()), "f");
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->settings, example().settings);
  EXPECT_EQ(back->next_iteration, 42);
  ASSERT_EQ(back->tensors.size(), 2U);
  EXPECT_EQ(back->tensors[0].name, "a");
  EXPECT_EQ(back->tensors[0].value, example().tensors[0].value);
  EXPECT_TRUE(back->tensors[1].value.empty());
  EXPECT_EQ(back->setting("model"), "vgg11");
  EXPECT_EQ(back->setting("unknown"), "");
}

TEST(Checkpoint, EveryTruncationAndEveryFlippedByteIsRefusedByName) {
  const std::string content = serialize(example());
  for (std::size_t length = 0; length < content.size(); ++length) {
    const auto back = read_checkpoint(std::string_view(content).substr(0, length), "some.ckpt");
    ASSERT_FALSE(back) << length;
    EXPECT_EQ(back.error().code, ErrorCode::bad_input);
    EXPECT_THAT(back.error().message, HasSubstr("some.ckpt"));
  }
  for (std::size_t i = 0; i < content.size(); ++i) {
    std::string damaged = content;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    EXPECT_FALSE(read_checkpoint(damaged, "f")) << i;
  }
}

TEST(Checkpoint, BytesAfterTheLastTensorAreRefused) {
  const auto back = read_checkpoint(serialize(example()) + "x", "f");
  ASSERT_FALSE(back);
  EXPECT_THAT(back.error().message, HasSubstr("follow the last tensor"));
}

}  // namespace
}  // namespace tidepool::nn
