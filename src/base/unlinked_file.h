// A file without a name: nothing of it is left, however the process ends. For what would take
// memory and is seldom read.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "base/bytes.h"
#include "base/result.h"

namespace tidepool {

/// To read and write, with these flags of open(2) besides; -1 and errno.
int open_unnamed(const std::string& folder, int flags);

/// Writes what is dirty to the disk and gives the pages of the page cache back. Only a hint: what
/// the file system refuses is not done.
void drop_cached(int file, Bytes offset, Bytes bytes);

/// Move-only. Reads may come from several threads at once.
class UnlinkedFile {
 public:
  static Result<UnlinkedFile> create(const std::string& folder);
  UnlinkedFile(UnlinkedFile&& other) noexcept;
  UnlinkedFile& operator=(UnlinkedFile&& other) noexcept;
  UnlinkedFile(const UnlinkedFile&) = delete;
  UnlinkedFile& operator=(const UnlinkedFile&) = delete;
  ~UnlinkedFile();

  /// So much of the disk is the file's from now on, where the file system can say so: writes below
  /// it do not fail for want of space. `infeasible` where less is free.
  Result<void> reserve(Bytes bytes);
  /// The bytes are on their way to the disk when it returns, and hardly any stay in memory.
  Result<void> write(Bytes offset, std::span<const std::byte> from);
  /// All of `to`; a file that ends before is an error. What is large leaves nothing in memory.
  Result<void> read(Bytes offset, std::span<std::byte> to) const;

 private:
  UnlinkedFile(int file, std::string folder) : file_(file), folder_(std::move(folder)) {}
  [[nodiscard]] tl::unexpected<Error> failed(const char* what, Bytes offset,
                                             std::size_t bytes) const;

  int file_ = -1;
  std::string folder_;
};

}  // namespace tidepool
