#include "nn/data/cifar10.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>
#include <vector>

#include "nn/data/pixels.h"

namespace tidepool::nn {
namespace {

constexpr ImageShape kImage{3, 32, 32};
constexpr std::int64_t kPlane = 32 * 32;
constexpr std::int64_t kRecord = 1 + 3 * kPlane;
constexpr std::int64_t kClasses = 10;
constexpr int kTrainFiles = 5;

class Cifar10 final : public Dataset {
 public:
  explicit Cifar10(std::vector<std::uint8_t> records)
      : records_(std::move(records)),
        table_(normalisation_table({{0.4914F, 0.4822F, 0.4465F}, {0.2470F, 0.2435F, 0.2616F}})) {}

  [[nodiscard]] std::string name() const override { return "cifar10"; }
  [[nodiscard]] std::int64_t size() const override {
    return static_cast<std::int64_t>(records_.size()) / kRecord;
  }
  [[nodiscard]] ImageShape image() const override { return kImage; }
  [[nodiscard]] std::int64_t classes() const override { return kClasses; }
  [[nodiscard]] std::int32_t label(std::int64_t sample) const override {
    return records_[sample * kRecord];
  }

  void fill(std::int64_t sample, float* to) const override {
    const std::uint8_t* pixel = records_.data() + sample * kRecord + 1;
    for (std::int64_t c = 0; c < kImage.channels; ++c) {
      const float* table = table_.data() + c * 256;
      for (std::int64_t i = 0; i < kPlane; ++i) *to++ = table[*pixel++];
    }
  }

 private:
  std::vector<std::uint8_t> records_;
  std::vector<float> table_;
};

Result<void> append_records(const std::string& path, std::vector<std::uint8_t>& records) {
  const auto bad = [&](const std::string& why) {
    return fail(ErrorCode::bad_input, path + ": " + why);
  };
  std::error_code error;
  const auto size = static_cast<std::int64_t>(std::filesystem::file_size(path, error));
  if (error) return bad("cannot open: " + error.message());
  if (size == 0 || size % kRecord != 0) {
    return bad(fmt::format("{} bytes are not whole records of {}", size, kRecord));
  }
  const auto begin = static_cast<std::int64_t>(records.size());
  records.resize(static_cast<std::size_t>(begin + size));
  std::ifstream file(path, std::ios::binary);
  if (!file.read(reinterpret_cast<char*>(records.data() + begin), size)) {
    return bad(fmt::format("cannot read: {}", std::strerror(errno)));
  }
  for (std::int64_t at = begin; at < begin + size; at += kRecord) {
    if (records[at] >= kClasses) {
      return bad(fmt::format("label {} of record {} is not below {}", records[at],
                             (at - begin) / kRecord, kClasses));
    }
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Dataset>> load_cifar10(Split split, const std::string& folder) {
  std::vector<std::string> paths;
  if (split == Split::test) {
    paths.push_back(folder + "/test_batch.bin");
  } else {
    int last = 1;
    for (int i = 2; i <= kTrainFiles; ++i) {
      if (std::filesystem::exists(fmt::format("{}/data_batch_{}.bin", folder, i))) last = i;
    }
    for (int i = 1; i <= last; ++i) paths.push_back(fmt::format("{}/data_batch_{}.bin", folder, i));
  }
  std::vector<std::uint8_t> records;
  for (const std::string& path : paths) {
    if (auto read = append_records(path, records); !read) return fail(read.error());
  }
  return std::make_unique<Cifar10>(std::move(records));
}

}  // namespace tidepool::nn
