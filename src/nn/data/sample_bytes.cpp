#include "nn/data/sample_bytes.h"

#include <algorithm>
#include <cassert>
#include <stdexcept>

namespace tidepool::nn {

Result<SampleBytes> SampleBytes::make(const std::string& scratch_folder) {
  SampleBytes bytes;
  if (scratch_folder.empty()) return bytes;
  auto file = UnlinkedFile::create(scratch_folder);
  if (!file) return fail(file.error());
  bytes.file_ = std::move(*file);
  return bytes;
}

Result<void> SampleBytes::append(std::span<const std::uint8_t> bytes) {
  if (!file_) {
    memory_.insert(memory_.end(), bytes.begin(), bytes.end());
  } else if (auto written = file_->write(size_, std::as_bytes(bytes)); !written) {
    return written;
  }
  size_ += static_cast<std::int64_t>(bytes.size());
  return {};
}

void SampleBytes::read(std::int64_t offset, std::span<std::uint8_t> to) const {
  assert(offset >= 0 && offset + static_cast<std::int64_t>(to.size()) <= size_);
  if (!file_) {
    std::copy_n(memory_.begin() + offset, to.size(), to.begin());
  } else if (auto read = file_->read(offset, std::as_writable_bytes(to)); !read) {
    throw std::runtime_error(read.error().message);
  }
}

}  // namespace tidepool::nn
