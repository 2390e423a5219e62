#include "nn/data/fashion_mnist.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "nn/data/idx_file.h"
#include "nn/data/pixels.h"

namespace tidepool::nn {
namespace {

constexpr std::int64_t kRawSize = 28;
constexpr std::int64_t kSize = 32;
constexpr std::int64_t kChannels = 3;
constexpr std::int64_t kClasses = 10;
constexpr std::int64_t kBorder = (kSize - kRawSize) / 2;

class FashionMnist final : public Dataset {
 public:
  FashionMnist(SampleBytes pixels, std::vector<std::uint8_t> labels)
      : pixels_(std::move(pixels)),
        labels_(std::move(labels)),
        table_(normalisation_table({{0.2860F}, {0.3530F}})) {}

  [[nodiscard]] std::string name() const override { return "fashion-mnist"; }
  [[nodiscard]] std::int64_t size() const override {
    return static_cast<std::int64_t>(labels_.size());
  }
  [[nodiscard]] ImageShape image() const override { return {kChannels, kSize, kSize}; }
  [[nodiscard]] std::int64_t classes() const override { return kClasses; }
  [[nodiscard]] std::int32_t label(std::int64_t sample) const override { return labels_[sample]; }

  /// Writes kSize x kSize labels.
  void fill_mask(std::int64_t sample, std::byte* to) const {
    const Raw pixels = raw(sample);
    const std::uint8_t* pixel = pixels.data();
    std::vector<std::int32_t> mask(kSize * kSize);
    for (std::int64_t y = 0; y < kRawSize; ++y) {
      std::int32_t* row = mask.data() + (y + kBorder) * kSize + kBorder;
      for (std::int64_t x = 0; x < kRawSize; ++x) row[x] = *pixel++ > 0 ? 1 : 0;
    }
    std::memcpy(to, mask.data(), mask.size() * sizeof(std::int32_t));
  }

  /// Writes kRawSize x kRawSize floats.
  void fill_vector(std::int64_t sample, float* to) const {
    const Raw pixels = raw(sample);
    const std::uint8_t* pixel = pixels.data();
    for (std::int64_t i = 0; i < kRawSize * kRawSize; ++i) to[i] = table_[pixel[i]];
  }

  void fill(std::int64_t sample, float* to) const override {
    const Raw pixels = raw(sample);
    const std::uint8_t* pixel = pixels.data();
    std::fill_n(to, kSize * kSize, table_[0]);
    for (std::int64_t y = 0; y < kRawSize; ++y) {
      float* row = to + (y + kBorder) * kSize + kBorder;
      for (std::int64_t x = 0; x < kRawSize; ++x) row[x] = table_[*pixel++];
    }
    for (std::int64_t c = 1; c < kChannels; ++c) {
      std::copy_n(to, kSize * kSize, to + c * kSize * kSize);
    }
  }

 private:
  using Raw = std::array<std::uint8_t, kRawSize * kRawSize>;
  [[nodiscard]] Raw raw(std::int64_t sample) const {
    Raw pixels;
    pixels_.read(sample * kRawSize * kRawSize, pixels);
    return pixels;
  }

  SampleBytes pixels_;
  std::vector<std::uint8_t> labels_;
  std::vector<float> table_;
};

class FashionMnistMasks final : public SampleSource {
 public:
  explicit FashionMnistMasks(std::unique_ptr<FashionMnist> images) : images_(std::move(images)) {}

  [[nodiscard]] std::string name() const override { return "fashion-mnist"; }
  [[nodiscard]] std::int64_t size() const override { return images_->size(); }
  [[nodiscard]] std::vector<Field> fields() const override {
    return {{"images", {{kChannels, kSize, kSize}}},
            {"labels", {{kSize, kSize}, ElementType::i32}, 2}};
  }
  void read(std::size_t field, std::int64_t sample, std::byte* to) const override {
    if (field == 0) return images_->fill(sample, reinterpret_cast<float*>(to));
    images_->fill_mask(sample, to);
  }

 private:
  std::unique_ptr<FashionMnist> images_;
};

class FashionMnistVectors final : public SampleSource {
 public:
  explicit FashionMnistVectors(std::unique_ptr<FashionMnist> images) : images_(std::move(images)) {}

  [[nodiscard]] std::string name() const override { return "fashion-mnist"; }
  [[nodiscard]] std::int64_t size() const override { return images_->size(); }
  [[nodiscard]] std::vector<Field> fields() const override {
    return {{"images", {{1, kRawSize, kRawSize}}}};
  }
  void read(std::size_t /*field*/, std::int64_t sample, std::byte* to) const override {
    images_->fill_vector(sample, reinterpret_cast<float*>(to));
  }

 private:
  std::unique_ptr<FashionMnist> images_;
};

Result<std::unique_ptr<FashionMnist>> load_files(Split split, const std::string& folder,
                                                 const std::string& scratch_folder) {
  const std::string stem = folder + (split == Split::train ? "/train" : "/t10k");
  const std::string images_path = stem + "-images-idx3-ubyte.gz";
  const std::string labels_path = stem + "-labels-idx1-ubyte.gz";
  auto images = read_idx_gz(images_path, 3, scratch_folder);
  if (!images) return fail(images.error());
  auto labels = read_idx_gz(labels_path, 1);
  if (!labels) return fail(labels.error());
  if (images->dims[1] != kRawSize || images->dims[2] != kRawSize) {
    return fail(ErrorCode::bad_input,
                fmt::format("{}: images of {}x{}, expected {}x{}", images_path, images->dims[1],
                            images->dims[2], kRawSize, kRawSize));
  }
  if (images->dims[0] != labels->dims[0]) {
    return fail(ErrorCode::bad_input, fmt::format("{}: {} labels for {} images", labels_path,
                                                  labels->dims[0], images->dims[0]));
  }
  std::vector<std::uint8_t> classes(static_cast<std::size_t>(labels->data.size()));
  labels->data.read(0, classes);
  for (std::size_t i = 0; i < classes.size(); ++i) {
    if (classes[i] >= kClasses) {
      return fail(ErrorCode::bad_input, fmt::format("{}: label {} of sample {} is not below {}",
                                                    labels_path, classes[i], i, kClasses));
    }
  }
  return std::make_unique<FashionMnist>(std::move(images->data), std::move(classes));
}

}  // namespace

Result<std::unique_ptr<Dataset>> load_fashion_mnist(Split split, const std::string& folder,
                                                    const std::string& scratch_folder) {
  auto loaded = load_files(split, folder, scratch_folder);
  if (!loaded) return fail(loaded.error());
  return std::unique_ptr<Dataset>(std::move(*loaded));
}

Result<std::unique_ptr<SampleSource>> load_fashion_mnist_vectors(
    Split split, const std::string& folder, const std::string& scratch_folder) {
  auto loaded = load_files(split, folder, scratch_folder);
  if (!loaded) return fail(loaded.error());
  return std::unique_ptr<SampleSource>(std::make_unique<FashionMnistVectors>(std::move(*loaded)));
}

Result<std::unique_ptr<SampleSource>> load_fashion_mnist_masks(Split split,
                                                               const std::string& folder,
                                                               const std::string& scratch_folder) {
  auto loaded = load_files(split, folder, scratch_folder);
  if (!loaded) return fail(loaded.error());
  return std::unique_ptr<SampleSource>(std::make_unique<FashionMnistMasks>(std::move(*loaded)));
}

}  // namespace tidepool::nn
