#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <numeric>
#include <set>

#include "base/random.h"
#include "nn/data/cifar10.h"
#include "nn/data/fashion_mnist.h"
#include "nn/data/sampler.h"
#include "nn/data/synthetic.h"

namespace tidepool::nn {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

/// A fresh folder, removed at the end.
class Folder {
 public:
  Folder() : path_(fs::path(::testing::TempDir()) / ("tidepool_data_" + name())) {
    fs::remove_all(path_);
    fs::create_directories(path_);
  }
  ~Folder() { fs::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  [[nodiscard]] std::string file(const std::string& name) const { return path_ / name; }
  [[nodiscard]] std::string path() const { return path_; }

 private:
  static std::string name() {
    return ::testing::UnitTest::GetInstance()->current_test_info()->name();
  }
  fs::path path_;
};

void write_gz(const std::string& path, const std::string& content) {
  gzFile file = gzopen(path.c_str(), "wb");
  ASSERT_NE(file, nullptr);
  ASSERT_EQ(gzwrite(file, content.data(), static_cast<unsigned>(content.size())),
            static_cast<int>(content.size()));
  ASSERT_EQ(gzclose(file), Z_OK);
}

std::string big_endian(std::uint32_t word) {
  std::string bytes;
  for (const int shift : {24, 16, 8, 0}) bytes.push_back(static_cast<char>(word >> shift & 0xff));
  return bytes;
}

std::string idx_images(std::uint32_t count, std::uint32_t size = 28) {
  std::string content = big_endian(0x803) + big_endian(count) + big_endian(size) + big_endian(size);
  for (std::uint32_t i = 0; i < count * size * size; ++i) {
    content.push_back(static_cast<char>(mix64(i) & 0xff));
  }
  return content;
}

std::string idx_labels(std::uint32_t count) {
  std::string content = big_endian(0x801) + big_endian(count);
  for (std::uint32_t i = 0; i < count; ++i) content.push_back(static_cast<char>(i % 10));
  return content;
}

constexpr const char* kTrainImages = "train-images-idx3-ubyte.gz";
constexpr const char* kTrainLabels = "train-labels-idx1-ubyte.gz";

void expect_bad(const Result<std::unique_ptr<Dataset>>& data, const std::string& file,
                const std::string& why) {
  ASSERT_FALSE(data) << file << ' ' << why;
  EXPECT_EQ(data.error().code, ErrorCode::bad_input);
  EXPECT_THAT(data.error().message, AllOf(HasSubstr(file), HasSubstr(why)));
}

TEST(FashionMnist, ReadsTheRealFiles) {
  if (!fs::exists(std::string(kFashionMnistFolder) + "/" + kTrainImages)) {
    GTEST_SKIP() << "Debian's dataset-fashion-mnist is not installed";
  }
  const auto train = load_fashion_mnist(Split::train);
  ASSERT_TRUE(train) << train.error().message;
  EXPECT_EQ((*train)->size(), 60000);
  EXPECT_EQ((*train)->image(), (ImageShape{3, 32, 32}));
  std::vector<std::int32_t> labels;
  for (std::int64_t i = 0; i < 5; ++i) labels.push_back((*train)->label(i));
  EXPECT_THAT(labels, ElementsAre(9, 0, 0, 3, 0));

  const auto test = load_fashion_mnist(Split::test);
  ASSERT_TRUE(test) << test.error().message;
  EXPECT_EQ((*test)->size(), 10000);

  // Over the 28x28 inside of the padded images, mean 0 and deviation 1.
  double sum = 0;
  double squares = 0;
  std::vector<float> image(3 * 32 * 32);
  constexpr std::int64_t kSamples = 2000;
  for (std::int64_t i = 0; i < kSamples; ++i) {
    (*train)->fill(i, image.data());
    for (std::int64_t y = 2; y < 30; ++y) {
      for (std::int64_t x = 2; x < 30; ++x) {
        const double value = image[y * 32 + x];
        sum += value;
        squares += value * value;
      }
    }
  }
  const double mean = sum / (kSamples * 784);
  EXPECT_NEAR(mean, 0, 0.02);
  EXPECT_NEAR(squares / (kSamples * 784) - mean * mean, 1, 0.02);
}

TEST(FashionMnist, PadsAndRepeatsChannels) {
  const Folder folder;
  write_gz(folder.file(kTrainImages), idx_images(3));
  write_gz(folder.file(kTrainLabels), idx_labels(3));
  const auto data = load_fashion_mnist(Split::train, folder.path());
  ASSERT_TRUE(data) << data.error().message;
  EXPECT_EQ((*data)->size(), 3);
  EXPECT_EQ((*data)->label(2), 2);
  std::vector<float> image(3 * 32 * 32, 99);
  (*data)->fill(1, image.data());
  const auto normalised = [](std::uint64_t byte) {
    return (static_cast<float>(byte) / 255.0F - 0.2860F) / 0.3530F;
  };
  for (std::int64_t c = 0; c < 3; ++c) {
    for (std::int64_t y = 0; y < 32; ++y) {
      for (std::int64_t x = 0; x < 32; ++x) {
        const bool inside = y >= 2 && y < 30 && x >= 2 && x < 30;
        const auto index = static_cast<std::uint64_t>(784 + (y - 2) * 28 + x - 2);
        const float expected = normalised(inside ? mix64(index) & 0xff : 0);
        ASSERT_FLOAT_EQ(image[(c * 32 + y) * 32 + x], expected) << c << ' ' << y << ' ' << x;
      }
    }
  }
}

TEST(FashionMnist, RefusesBadFiles) {
  const Folder folder;
  const auto load = [&] { return load_fashion_mnist(Split::train, folder.path()); };
  const std::string images = folder.file(kTrainImages);
  const std::string labels = folder.file(kTrainLabels);
  expect_bad(load(), kTrainImages, "cannot open");

  write_gz(images, idx_images(5));
  write_gz(labels, idx_labels(4));
  expect_bad(load(), kTrainLabels, "4 labels for 5 images");
  write_gz(labels, idx_images(5));
  expect_bad(load(), kTrainLabels, "magic number 0x00000803, expected 0x00000801");
  write_gz(labels, big_endian(0x801) + big_endian(5) + std::string("\0\1\2\3\12", 5));
  expect_bad(load(), kTrainLabels, "label 10 of sample 4");
  write_gz(labels, idx_labels(5) + "x");
  expect_bad(load(), kTrainLabels, "after its 5 elements");
  write_gz(labels, idx_labels(5));
  ASSERT_TRUE(load());

  fs::resize_file(images, fs::file_size(images) / 2);
  expect_bad(load(), kTrainImages, "truncated");
  write_gz(images, idx_images(5).substr(0, 1000));
  expect_bad(load(), kTrainImages, "truncated: 984 of 3920");
  write_gz(images, idx_images(5).substr(0, 10));
  expect_bad(load(), kTrainImages, "truncated in the header");
  write_gz(images, idx_images(5, 20));
  expect_bad(load(), kTrainImages, "20x20");
  write_gz(images, big_endian(0x803) + std::string(12, '\xff'));
  expect_bad(load(), kTrainImages, "claims 4294967295");
  write_gz(images, "");
  expect_bad(load(), kTrainImages, "truncated in the header");
}

TEST(FashionMnist, SeesADamagedStream) {
  const Folder folder;
  write_gz(folder.file(kTrainImages), idx_images(50));
  write_gz(folder.file(kTrainLabels), idx_labels(50));
  std::fstream file(folder.file(kTrainImages), std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(-6, std::ios::end);  // inside the checksum
  file.put('!');
  file.close();
  expect_bad(load_fashion_mnist(Split::train, folder.path()), kTrainImages, "gzip");
}

void write_cifar(const std::string& path, int records, int first_label) {
  std::ofstream file(path, std::ios::binary);
  for (int r = 0; r < records; ++r) {
    file.put(static_cast<char>((first_label + r) % 10));
    for (int i = 0; i < 3072; ++i) file.put(static_cast<char>((r + i / 12) & 0xff));
  }
}

TEST(Cifar10, ReadsItsRecords) {
  const Folder folder;
  write_cifar(folder.file("data_batch_1.bin"), 3, 6);
  write_cifar(folder.file("data_batch_2.bin"), 2, 1);
  for (int i = 3; i <= 5; ++i) write_cifar(folder.file(fmt::format("data_batch_{}.bin", i)), 1, i);
  write_cifar(folder.file("test_batch.bin"), 1, 9);
  const auto data = load_cifar10(Split::train, folder.path());
  ASSERT_TRUE(data) << data.error().message;
  EXPECT_EQ((*data)->size(), 8);
  EXPECT_EQ((*data)->label(2), 8);
  EXPECT_EQ((*data)->label(3), 1);
  std::vector<float> image(3072);
  (*data)->fill(2, image.data());
  EXPECT_FLOAT_EQ(image[0], (2.0F / 255.0F - 0.4914F) / 0.2470F);
  EXPECT_FLOAT_EQ(image[3071], (257 % 256 / 255.0F - 0.4465F) / 0.2616F);
  EXPECT_EQ((*load_cifar10(Split::test, folder.path()))->size(), 1);
}

TEST(Cifar10, RefusesBadFiles) {
  const Folder folder;
  const auto load = [&] { return load_cifar10(Split::train, folder.path()); };
  expect_bad(load(), "data_batch_1.bin", "cannot open");
  write_cifar(folder.file("data_batch_1.bin"), 2, 0);
  write_cifar(folder.file("data_batch_3.bin"), 2, 0);
  expect_bad(load(), "data_batch_2.bin", "cannot open");
  write_cifar(folder.file("data_batch_2.bin"), 2, 0);
  // It trained on what was there, without a word.
  expect_bad(load(), "data_batch_4.bin", "cannot open");
  for (int i = 4; i <= 5; ++i) write_cifar(folder.file(fmt::format("data_batch_{}.bin", i)), 1, 0);
  ASSERT_TRUE(load());
  fs::resize_file(folder.file("data_batch_2.bin"), 3073 + 5);
  expect_bad(load(), "data_batch_2.bin", "3078 bytes are not whole records of 3073");
  std::ofstream(folder.file("data_batch_2.bin"), std::ios::binary) << std::string(3073, '\x20');
  expect_bad(load(), "data_batch_2.bin", "label 32 of record 0");
}

TEST(Synthetic, IsAFunctionOfItsSeed) {
  const SyntheticDataset a({3, 8, 6}, 10, 100, 1);
  const SyntheticDataset b({3, 8, 6}, 10, 100, 1);
  const SyntheticDataset c({3, 8, 6}, 10, 100, 2);
  std::vector<float> x(144);
  std::vector<float> y(144);
  std::vector<float> z(144);
  std::set<std::int32_t> labels;
  for (std::int64_t i = 0; i < 100; ++i) {
    a.fill(i, x.data());
    b.fill(i, y.data());
    c.fill(i, z.data());
    EXPECT_EQ(x, y);
    EXPECT_NE(x, z);
    EXPECT_EQ(a.label(i), b.label(i));
    labels.insert(a.label(i));
  }
  EXPECT_EQ(labels.size(), 10U);
  EXPECT_EQ(*labels.begin(), 0);
  EXPECT_EQ(*labels.rbegin(), 9);
}

std::vector<std::int64_t> batch_of(const Sampler& sampler, std::int64_t iteration,
                                   std::size_t size) {
  std::vector<std::int64_t> samples(size);
  sampler.samples(iteration, 0, samples);
  return samples;
}

TEST(Sampler, VisitsEachSampleOnceAnEpoch) {
  const Sampler sampler(103, 10, 7);
  ASSERT_EQ(sampler.batches_per_epoch(), 10);
  std::set<std::int64_t> seen;
  for (std::int64_t i = 0; i < 10; ++i) {
    for (const std::int64_t sample : batch_of(sampler, i, 10)) {
      EXPECT_TRUE(sample >= 0 && sample < 103);
      EXPECT_TRUE(seen.insert(sample).second) << sample;
    }
  }
  EXPECT_EQ(seen.size(), 100U);
}

TEST(Sampler, IsAPureFunctionOfTheIteration) {
  const Sampler forwards(60, 6, 3);
  const Sampler backwards(60, 6, 3);
  const Sampler other(60, 6, 4);
  std::vector<std::vector<std::int64_t>> batches;
  for (std::int64_t i = 0; i < 30; ++i) batches.push_back(batch_of(forwards, i, 6));
  for (std::int64_t i = 29; i >= 0; --i) EXPECT_EQ(batch_of(backwards, i, 6), batches[i]);
  EXPECT_NE(batches[0], batches[10]) << "epochs have orders of their own";
  EXPECT_NE(batch_of(other, 0, 6), batches[0]);
  std::vector<std::int64_t> part(2);
  forwards.samples(4, 3, part);
  EXPECT_THAT(part, ElementsAre(batches[4][3], batches[4][4]));
}

}  // namespace
}  // namespace tidepool::nn
