// Checkpoint: the persistent tensors of a training and what is needed to go on exactly.
//
// File: the line "tidepool checkpoint 1", the length of the header (8 bytes, little-endian), the
// header (JSON), the tensors' bytes in the header's order, and the CRC-32 of all before it (4
// bytes, little-endian). Written beside the target and renamed: an interrupt or a full disk leaves
// the old file.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace tidepool::nn {

struct CheckpointTensor {
  std::string name;
  std::vector<std::byte> value;  ///< in the tensor's own layout
};

struct Checkpoint {
  /// Names of settings that must be the same when training goes on (model, batch, seed, ...).
  std::vector<std::pair<std::string, std::string>> settings;
  std::int64_t next_iteration = 0;
  std::vector<CheckpointTensor> tensors;

  /// Empty when the file does not say.
  [[nodiscard]] std::string setting(std::string_view name) const;
};

std::string serialize(const Checkpoint& checkpoint);
/// Errors name `file` and what is wrong: not a checkpoint, truncated, damaged, a header field.
Result<Checkpoint> read_checkpoint(std::string_view content, std::string_view file);

}  // namespace tidepool::nn
