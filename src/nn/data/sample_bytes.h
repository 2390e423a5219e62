// SampleBytes: the bytes of a data set as its files have them, in memory or in a file without a
// name: then they take memory only while somebody reads them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/unlinked_file.h"

namespace tidepool::nn {

/// Move-only. Reads may come from several threads at once.
class SampleBytes {
 public:
  /// In a file of that folder; in memory where it is empty.
  static Result<SampleBytes> make(const std::string& scratch_folder);

  [[nodiscard]] std::int64_t size() const { return size_; }
  Result<void> append(std::span<const std::uint8_t> bytes);
  /// Throws std::runtime_error where the file fails.
  void read(std::int64_t offset, std::span<std::uint8_t> to) const;

 private:
  SampleBytes() = default;

  std::int64_t size_ = 0;
  std::vector<std::uint8_t> memory_;
  std::optional<UnlinkedFile> file_;
};

}  // namespace tidepool::nn
