// Checkpoint: the persistent tensors of a training and what is needed to go on exactly.
//
// File: the line "tidepool checkpoint 1", the length of the header (8 bytes, little-endian), the
// header (JSON), the tensors' bytes in the header's order, and the CRC-32 of all before it (4
// bytes, little-endian). Written beside the target and renamed: an interrupt or a full disk leaves
// the old file. It may be larger than memory: values are read and written in pieces.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/file.h"
#include "base/result.h"

namespace tidepool::nn {

struct CheckpointTensor {
  std::string name;
  Bytes bytes = 0;  ///< in the tensor's own layout
};

/// All but the values.
struct Checkpoint {
  /// Names of settings that must be the same when training goes on (model, batch, seed, ...).
  std::vector<std::pair<std::string, std::string>> settings;
  std::int64_t next_iteration = 0;
  std::vector<CheckpointTensor> tensors;

  /// Empty when the file does not say.
  [[nodiscard]] std::string setting(std::string_view name) const;
};

/// A part of the value of `tensors[tensor]`, from `offset` on.
using ReadPart = std::function<void(std::size_t tensor, Bytes offset, std::span<std::byte> to)>;
using TakePart = std::function<void(std::size_t tensor, Bytes offset, std::span<const std::byte>)>;

/// Whether a file there begins as one, of any version.
bool is_checkpoint(const std::string& path);

void write_checkpoint(const Checkpoint& checkpoint, const ReadPart& values, const FileSink& sink);

/// A checkpoint's file that stays open: that another is renamed over it makes no difference.
class CheckpointFile {
 public:
  /// Reads all of it once. Errors name `path` and what is wrong: not a checkpoint, truncated,
  /// damaged, a header field.
  static Result<CheckpointFile> open(const std::string& path);
  CheckpointFile(CheckpointFile&& other) noexcept;
  CheckpointFile& operator=(CheckpointFile&& other) noexcept;
  CheckpointFile(const CheckpointFile&) = delete;
  CheckpointFile& operator=(const CheckpointFile&) = delete;
  ~CheckpointFile();

  [[nodiscard]] const Checkpoint& checkpoint() const { return checkpoint_; }
  /// The whole value of a tensor, in pieces and in order.
  Result<void> read(std::size_t tensor, const TakePart& take) const;

 private:
  CheckpointFile(std::string path, int file) : path_(std::move(path)), file_(file) {}
  Result<void> read_header();
  [[nodiscard]] Result<void> read_at(Bytes offset, std::span<std::byte> to) const;
  [[nodiscard]] Result<void> check_sum() const;
  [[nodiscard]] tl::unexpected<Error> bad(std::string_view what) const;

  std::string path_;
  int file_ = -1;
  Bytes size_ = 0;
  Checkpoint checkpoint_;
  std::vector<Bytes> offsets_;  ///< by tensor
};

}  // namespace tidepool::nn
