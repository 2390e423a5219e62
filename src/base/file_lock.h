// A lock on the name of a file that is replaced again and again, which a lock on the file itself
// would not outlast. It ends with its process, however that ends.
#pragma once

#include <string>

#include "base/result.h"

namespace tidepool {

/// Held by an open file `path`.lock, which is gone with the lock. Move-only.
class FileLock {
 public:
  /// Fails with `runtime` where another process, or another lock of this one, has it, and where a
  /// file of that name is something else. A file system without locks gives one that is not held.
  static Result<FileLock> take(const std::string& path);
  FileLock() = default;
  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&& other) noexcept;
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  ~FileLock();

  [[nodiscard]] bool held() const { return file_ >= 0; }

 private:
  FileLock(std::string name, int file) : name_(std::move(name)), file_(file) {}

  std::string name_;
  int file_ = -1;
};

}  // namespace tidepool
