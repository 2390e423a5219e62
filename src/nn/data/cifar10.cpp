#include "nn/data/cifar10.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>
#include <vector>

#include "nn/data/pixels.h"
#include "nn/data/sample_bytes.h"

namespace tidepool::nn {
namespace {

constexpr ImageShape kImage{3, 32, 32};
constexpr std::int64_t kPlane = 32 * 32;
constexpr std::int64_t kRecord = 1 + 3 * kPlane;
constexpr std::int64_t kCifarClasses = 10;
constexpr int kTrainFiles = 5;

class Cifar10 final : public Dataset {
 public:
  Cifar10(SampleBytes records, std::vector<std::uint8_t> labels)
      : records_(std::move(records)),
        labels_(std::move(labels)),
        table_(normalisation_table({{0.4914F, 0.4822F, 0.4465F}, {0.2470F, 0.2435F, 0.2616F}})) {}

  [[nodiscard]] std::string name() const override { return "cifar10"; }
  [[nodiscard]] std::int64_t size() const override {
    return static_cast<std::int64_t>(labels_.size());
  }
  [[nodiscard]] ImageShape image() const override { return kImage; }
  [[nodiscard]] std::int64_t classes() const override { return kCifarClasses; }
  [[nodiscard]] std::int32_t label(std::int64_t sample) const override {
    return labels_[static_cast<std::size_t>(sample)];
  }

  void fill(std::int64_t sample, float* to) const override {
    std::array<std::uint8_t, kRecord> record;
    records_.read(sample * kRecord, record);
    const std::uint8_t* pixel = record.data() + 1;
    for (std::int64_t c = 0; c < kImage.channels; ++c) {
      const float* table = table_.data() + c * 256;
      for (std::int64_t i = 0; i < kPlane; ++i) *to++ = table[*pixel++];
    }
  }

 private:
  SampleBytes records_;
  std::vector<std::uint8_t> labels_;
  std::vector<float> table_;
};

/// `labels`: of the records, which are appended.
Result<void> append_records(const std::string& path, SampleBytes& records,
                            std::vector<std::uint8_t>& labels) {
  const auto bad = [&](const std::string& why) {
    return fail(ErrorCode::bad_input, path + ": " + why);
  };
  std::error_code error;
  const auto size = static_cast<std::int64_t>(std::filesystem::file_size(path, error));
  if (error) return bad("cannot open: " + error.message());
  if (size == 0 || size % kRecord != 0) {
    return bad(fmt::format("{} bytes are not whole records of {}", size, kRecord));
  }
  std::ifstream file(path, std::ios::binary);
  constexpr std::int64_t kAtOnce = 1000 * kRecord;
  std::vector<std::uint8_t> piece;
  for (std::int64_t at = 0; at < size; at += kAtOnce) {
    piece.resize(static_cast<std::size_t>(std::min(kAtOnce, size - at)));
    if (!file.read(reinterpret_cast<char*>(piece.data()),
                   static_cast<std::streamsize>(piece.size()))) {
      return bad(fmt::format("cannot read: {}", std::strerror(errno)));
    }
    for (std::size_t i = 0; i < piece.size(); i += kRecord) {
      labels.push_back(piece[i]);
      if (piece[i] < kCifarClasses) continue;
      return bad(fmt::format("label {} of record {} is not below {}", piece[i],
                             at / kRecord + static_cast<std::int64_t>(i) / kRecord, kCifarClasses));
    }
    if (auto appended = records.append(piece); !appended) return appended;
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Dataset>> load_cifar10(Split split, const std::string& folder,
                                              const std::string& scratch_folder) {
  std::vector<std::string> paths;
  if (split == Split::test) {
    paths.push_back(folder + "/test_batch.bin");
  } else {
    for (int i = 1; i <= kTrainFiles; ++i) {
      paths.push_back(fmt::format("{}/data_batch_{}.bin", folder, i));
    }
  }
  auto records = SampleBytes::make(scratch_folder);
  if (!records) return fail(records.error());
  std::vector<std::uint8_t> labels;
  for (const std::string& path : paths) {
    if (auto read = append_records(path, *records, labels); !read) return fail(read.error());
  }
  return std::make_unique<Cifar10>(std::move(*records), std::move(labels));
}

}  // namespace tidepool::nn
