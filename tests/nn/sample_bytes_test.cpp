#include "nn/data/sample_bytes.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "nn/data/cifar10.h"
#include "nn/data/text.h"
#include "support/process.h"

namespace tidepool::nn {
namespace {

using tidepool::testing::TemporaryFolder;

void write(const std::string& path, std::size_t bytes, std::uint8_t most) {
  std::ofstream file(path, std::ios::binary);
  for (std::size_t i = 0; i < bytes; ++i) file.put(static_cast<char>(1 + i * 31 % most));
}

/// Both give the same for every field of every sample.
void expect_same(const SampleSource& a, const SampleSource& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t field = 0; field < a.fields().size(); ++field) {
    const auto bytes = static_cast<std::size_t>(4 * a.fields()[field].type.elements());
    std::vector<std::byte> of_a(bytes), of_b(bytes, std::byte{1});
    for (std::int64_t sample = 0; sample < a.size(); ++sample) {
      a.read(field, sample, of_a.data());
      b.read(field, sample, of_b.data());
      ASSERT_TRUE(of_a == of_b) << field << " of " << sample;
    }
  }
}

TEST(SampleBytes, InAFileAreWhatTheyAreInMemory) {
  const TemporaryFolder scratch;
  auto memory = SampleBytes::make({});
  auto file = SampleBytes::make(scratch.path());
  ASSERT_TRUE(memory && file);
  const std::vector<std::uint8_t> first{1, 2, 3}, second{4, 5};
  for (SampleBytes* bytes : {&*memory, &*file}) {
    ASSERT_TRUE(bytes->append(first));
    ASSERT_TRUE(bytes->append(second));
    EXPECT_EQ(bytes->size(), 5);
    std::vector<std::uint8_t> to(3);
    bytes->read(1, to);
    EXPECT_EQ(to, (std::vector<std::uint8_t>{2, 3, 4}));
  }
  EXPECT_TRUE(std::filesystem::is_empty(scratch.path()));
  EXPECT_FALSE(SampleBytes::make("/nonexistent"));
}

TEST(SampleBytes, ImagesAndTextsOfAFileAreThoseOfMemory) {
  const TemporaryFolder folder, scratch;
  write(folder.file("test_batch.bin"), std::size_t{3073} * 5, 9);
  const auto images = load_cifar10(Split::test, folder.path());
  const auto kept = load_cifar10(Split::test, folder.path(), scratch.path());
  ASSERT_TRUE(images && kept);
  expect_same(**images, **kept);
  write(folder.file("a.txt"), 3000, 200);
  const auto text = load_text(Split::test, {16, true}, folder.path());
  const auto text_kept = load_text(Split::test, {16, true}, folder.path(), scratch.path());
  ASSERT_TRUE(text && text_kept);
  expect_same(**text, **text_kept);
}

}  // namespace
}  // namespace tidepool::nn
