#include "base/file_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

namespace tidepool {
namespace {

constexpr std::string_view kStart = "tidepool, process ";

/// Whether the open file still has this name: whoever held the lock before may have removed it.
bool has_name(int file, const std::string& name) {
  struct stat open {};
  struct stat named {};
  return ::fstat(file, &open) == 0 && ::stat(name.c_str(), &named) == 0 &&
         open.st_dev == named.st_dev && open.st_ino == named.st_ino;
}

/// Whether somebody else's file has the name of a lock.
bool is_foreign(int file, const std::string& content) {
  struct stat open {};
  const bool regular = ::fstat(file, &open) == 0 && S_ISREG(open.st_mode);
  return !regular || (!content.empty() && !content.starts_with(kStart));
}

std::string content_of(int file) {
  char buffer[64];
  const ssize_t got = ::pread(file, buffer, sizeof buffer, 0);
  return got > 0 ? std::string(buffer, static_cast<std::size_t>(got)) : std::string();
}

/// Says who holds the lock, for people.
void write_owner(int file) {
  const std::string owner = fmt::format("{}{}\n", kStart, ::getpid());
  // A disk that is full leaves the lock as good as it was.
  if (::ftruncate(file, 0) == 0 && ::pwrite(file, owner.data(), owner.size(), 0) < 0) return;
}

std::string owner_in(std::string_view content) {
  if (!content.starts_with(kStart)) return "another process";
  content.remove_prefix(kStart.size());
  return fmt::format("process {}", content.substr(0, content.find('\n')));
}

}  // namespace

Result<FileLock> FileLock::take(const std::string& path) {
  const std::string name = path + ".lock";
  while (true) {
    const int file = ::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (file < 0) {
      return fail(ErrorCode::runtime,
                  fmt::format("{}: cannot create: {}", name, std::strerror(errno)));
    }
    FileLock lock(name, file);
    const std::string content = content_of(file);
    if (is_foreign(file, content)) {
      ::close(std::exchange(lock.file_, -1));
      return fail(ErrorCode::runtime, fmt::format("{}: exists and is no lock of tidepool's", name));
    }
    if (::flock(file, LOCK_EX | LOCK_NB) != 0) {
      const int reason = errno;
      if (reason != EWOULDBLOCK) return FileLock();
      ::close(std::exchange(lock.file_, -1));
      return fail(ErrorCode::runtime, fmt::format("{}: {} writes to it. Wait for its end, or name "
                                                  "another file",
                                                  path, owner_in(content)));
    }
    if (has_name(file, name)) {
      write_owner(file);
      return lock;
    }
    ::close(std::exchange(lock.file_, -1));
  }
}

FileLock::FileLock(FileLock&& other) noexcept
    : name_(std::move(other.name_)), file_(std::exchange(other.file_, -1)) {}

FileLock& FileLock::operator=(FileLock&& other) noexcept {
  std::swap(name_, other.name_);
  std::swap(file_, other.file_);
  return *this;
}

FileLock::~FileLock() {
  if (file_ < 0) return;
  // While it is held, so that nobody else's is removed.
  ::unlink(name_.c_str());
  ::close(file_);
}

}  // namespace tidepool
