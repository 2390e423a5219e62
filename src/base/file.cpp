#include "base/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "base/bytes.h"
#include "base/unlinked_file.h"

namespace tidepool {

Result<std::string> read_file(const std::string& path, std::size_t most) {
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) {
    return fail(ErrorCode::bad_input,
                fmt::format("{}: cannot open: {}", path, std::strerror(errno)));
  }
  std::string content;
  char buffer[1 << 16];
  std::size_t got = 0;
  while (content.size() <= most && (got = std::fread(buffer, 1, sizeof buffer, file)) > 0) {
    content.append(buffer, got);
  }
  const bool failed = std::ferror(file) != 0;
  const int reason = errno;
  std::fclose(file);
  if (failed) {
    return fail(ErrorCode::bad_input,
                fmt::format("{}: cannot read: {}", path, std::strerror(reason)));
  }
  if (content.size() > most) {
    return fail(ErrorCode::bad_input, fmt::format("{}: has more than {} bytes", path, most));
  }
  return content;
}

namespace {

/// All of it, or false with errno.
bool write_all(int file, std::string_view content) {
  while (!content.empty()) {
    const ssize_t written = ::write(file, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    content.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

/// What `produce` gives, then everything on the disk. False with errno.
bool fill(int file, const std::function<void(const FileSink&)>& produce) {
  constexpr Bytes kDropped = 8 * kMiB;
  Bytes end = 0, kept = 0;
  int reason = 0;
  produce([&](std::string_view content) {
    if (reason == 0 && !write_all(file, content)) reason = errno;
    end += static_cast<Bytes>(content.size());
    if (reason == 0 && end - kept >= kDropped) {
      drop_cached(file, kept, end - kept);
      kept = end;
    }
    return reason == 0;
  });
  if (reason == 0 && ::fsync(file) != 0 && errno != EINVAL && errno != EROFS) reason = errno;
  errno = reason;
  return reason == 0;
}

}  // namespace

Result<void> write_file(const std::string& path, std::string_view content) {
  return write_file(path, [&](const FileSink& sink) { sink(content); });
}

std::string followed(const std::string& path) {
  std::error_code failed;
  if (!std::filesystem::is_symlink(path, failed)) return path;
  const auto target = std::filesystem::weakly_canonical(path, failed);
  return failed || std::filesystem::is_symlink(target, failed) ? path : target.string();
}

Result<void> write_file(const std::string& named,
                        const std::function<void(const FileSink&)>& produce) {
  const std::string path = followed(named);
  // A pipe or a device is written to; only files are replaced (and folders refuse that).
  struct stat existing {};
  const bool in_place = ::stat(path.c_str(), &existing) == 0 && !S_ISREG(existing.st_mode) &&
                        !S_ISDIR(existing.st_mode);
  const std::string temporary = in_place ? path : fmt::format("{}.{}.tmp", path, ::getpid());
  const auto give_up = [&](const char* what) -> Result<void> {
    const int reason = errno;
    if (!in_place) ::unlink(temporary.c_str());
    return fail(ErrorCode::runtime,
                fmt::format("{}: cannot {}: {}", path, what, std::strerror(reason)));
  };
  const int file =
      ::open(temporary.c_str(), O_WRONLY | O_CLOEXEC | (in_place ? 0 : O_CREAT | O_TRUNC), 0644);
  if (file < 0) return give_up("create");
  if (!fill(file, produce)) {
    const int reason = errno;
    ::close(file);
    errno = reason;
    return give_up("write");
  }
  if (::close(file) != 0) return give_up("write");
  if (!in_place && std::rename(temporary.c_str(), path.c_str()) != 0)
    return give_up("rename into place");
  return {};
}

}  // namespace tidepool
