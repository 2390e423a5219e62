#include "base/unlinked_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "base/error_number.h"
#include "base/quantity.h"

namespace tidepool {
namespace {

/// What the page cache may hold of a file at a time.
constexpr std::size_t kPiece = std::size_t{8} << 20;
/// What is read in smaller pieces, samples, may be wanted again soon.
constexpr std::size_t kLarge = std::size_t{256} << 10;

/// Pages are cached in folios of up to some MiB, and one that the range has only a part of stays:
/// it goes with the range behind it.
void forget(int file, Bytes offset, Bytes bytes) {
  const Bytes before = std::min(offset, static_cast<Bytes>(kPiece));
  ::posix_fadvise(file, offset - before, before + bytes, POSIX_FADV_DONTNEED);
}

}  // namespace

void drop_cached(int file, Bytes offset, Bytes bytes) {
  ::sync_file_range(
      file, offset, bytes,
      SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
  forget(file, offset, bytes);
}

int open_unnamed(const std::string& folder, int flags) {
  const int file = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC | flags, 0600);
  if (file >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)) return file;
  // No O_TMPFILE here, or not with these flags. A name for a moment; nobody else's file.
  std::string name = folder + "/tidepool-XXXXXX";
  const int named = ::mkostemp(name.data(), O_CLOEXEC | flags);
  const int reason = errno;
  // Some leave a file behind when they refuse the flags.
  if (named >= 0 || reason == EINVAL) ::unlink(name.c_str());
  errno = reason;
  return named;
}

Result<UnlinkedFile> UnlinkedFile::create(const std::string& folder) {
  const int file = open_unnamed(folder, 0);
  if (file < 0) {
    return fail(ErrorCode::runtime,
                fmt::format("{}: cannot make a file there: {}", folder, describe_errno(errno)));
  }
  // Read-ahead, of 8 MiB and more on some disks, would be memory that nobody has counted.
  ::posix_fadvise(file, 0, 0, POSIX_FADV_RANDOM);
  return UnlinkedFile(file, folder);
}

UnlinkedFile::UnlinkedFile(UnlinkedFile&& other) noexcept
    : file_(std::exchange(other.file_, -1)), folder_(std::move(other.folder_)) {}

UnlinkedFile& UnlinkedFile::operator=(UnlinkedFile&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(folder_, other.folder_);
  return *this;
}

UnlinkedFile::~UnlinkedFile() {
  if (file_ >= 0) ::close(file_);
}

tl::unexpected<Error> UnlinkedFile::failed(const char* what, Bytes offset,
                                           std::size_t bytes) const {
  return fail(ErrorCode::runtime,
              fmt::format("{}: cannot {} {} B at {} of a file there: {}", folder_, what, bytes,
                          offset, errno == 0 ? "it ends before" : describe_errno(errno)));
}

Result<void> UnlinkedFile::reserve(Bytes bytes) {
  struct statvfs status {};
  // Compared first: a fallocate that fails takes all that is free until the file is closed.
  if (::fstatvfs(file_, &status) == 0) {
    const Bytes free = static_cast<Bytes>(status.f_bavail) * static_cast<Bytes>(status.f_frsize);
    if (free < bytes) {
      return fail(ErrorCode::infeasible,
                  fmt::format("{}: the disk is too small: {} are needed, {} are free", folder_,
                              format_bytes_up(bytes), format_bytes(free)));
    }
  }
  while (bytes > 0 && ::fallocate(file_, 0, 0, bytes) != 0) {
    if (errno == EINTR) continue;
    if (errno == EOPNOTSUPP || errno == ENOSYS) break;
    return failed("take", 0, static_cast<std::size_t>(bytes));
  }
  return {};
}

Result<void> UnlinkedFile::write(Bytes offset, std::span<const std::byte> from) {
  while (!from.empty()) {
    const ssize_t done = ::pwrite(file_, from.data(), std::min(from.size(), kPiece), offset);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return failed("write", offset, from.size());
    drop_cached(file_, offset, done);
    from = from.subspan(static_cast<std::size_t>(done));
    offset += done;
  }
  return {};
}

Result<void> UnlinkedFile::read(Bytes offset, std::span<std::byte> to) const {
  const bool large = to.size() >= kLarge;
  while (!to.empty()) {
    errno = 0;
    const ssize_t done = ::pread(file_, to.data(), std::min(to.size(), kPiece), offset);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return failed("read", offset, to.size());
    if (large) forget(file_, offset, done);
    to = to.subspan(static_cast<std::size_t>(done));
    offset += done;
  }
  return {};
}

}  // namespace tidepool
