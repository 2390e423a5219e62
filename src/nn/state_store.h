// StateStore: values of persistent tensors while no device has them, in memory or in a file.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/unlinked_file.h"
#include "ir/program.h"

namespace tidepool::nn {

/// Threads: different tensors may be read and written at the same time.
class StateStore {
 public:
  /// `bytes` by tensor. No tensor has a value yet.
  explicit StateStore(std::vector<Bytes> bytes);

  /// Values given from now on are in a file of that folder, which has no name and has its space
  /// from the beginning. Before the first. `infeasible` where the disk has no room for them.
  Result<void> use_folder(const std::string& folder);

  [[nodiscard]] Bytes bytes(TensorId tensor) const;
  [[nodiscard]] bool has(TensorId tensor) const;
  /// Some bytes of a value that is there. Throws std::runtime_error where the file fails.
  void read(TensorId tensor, Bytes offset, std::span<std::byte> to) const;
  /// The value is there from now on; what is not written of it stays.
  void write(TensorId tensor, Bytes offset, std::span<const std::byte> from);
  /// Its memory is given back, and the value is gone. In a file it stays.
  void release(TensorId tensor);

 private:
  struct Value {
    Bytes bytes = 0;
    Bytes offset = 0;  ///< in the file
    std::vector<std::byte> memory;
    bool there = false;
  };
  std::vector<Value> values_;
  Bytes file_bytes_ = 0;
  std::optional<UnlinkedFile> file_;
};

}  // namespace tidepool::nn
