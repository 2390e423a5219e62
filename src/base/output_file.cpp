#include "base/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>

namespace tidepool {
namespace {

tl::unexpected<Error> cannot(const char* what, const std::string& path, int reason) {
  return fail(ErrorCode::runtime,
              fmt::format("{}: cannot {}: {}", path, what, std::strerror(reason)));
}

}  // namespace

Result<void> check_writable(const std::string& path, Bytes bytes) {
  if (path.empty()) return {};
  struct stat existing {};
  const bool exists = ::stat(path.c_str(), &existing) == 0;
  if (exists && S_ISDIR(existing.st_mode)) return cannot("write", path, EISDIR);
  if (exists && !S_ISREG(existing.st_mode)) {  // a device or a pipe: it is written to in place
    return ::access(path.c_str(), W_OK) == 0 ? Result<void>() : cannot("write", path, errno);
  }
  const std::string probe = fmt::format("{}.{}.tmp", path, ::getpid());
  const int file = ::open(probe.c_str(), O_WRONLY | O_CLOEXEC | O_CREAT | O_TRUNC, 0644);
  if (file < 0) return cannot("create", path, errno);
  const std::array<char, 4096> block{};
  // Not every file system can set bytes aside: then only the block is tried.
  const bool none = bytes > 0 && ::fallocate(file, 0, 0, bytes) != 0 &&
                    (errno == ENOSPC || errno == EFBIG || errno == EDQUOT);
  const bool room = !none && ::write(file, block.data(), block.size()) == std::ssize(block);
  const int reason = room ? 0 : errno;
  ::close(file);
  ::unlink(probe.c_str());
  if (!room) return cannot("write", path, reason);
  return {};
}

Result<void> check_no_input(const std::string& output, std::span<const std::string> inputs) {
  struct stat written {};
  if (output.empty() || ::stat(output.c_str(), &written) != 0) return {};
  if (!S_ISREG(written.st_mode)) return {};  // a terminal is both
  for (const std::string& input : inputs) {
    struct stat read {};
    if (input.empty() || ::stat(input.c_str(), &read) != 0) continue;
    if (read.st_dev != written.st_dev || read.st_ino != written.st_ino) continue;
    return fail(
        ErrorCode::usage,
        fmt::format("{}: is what is read ({}); writing it would destroy that", output, input));
  }
  return {};
}

Result<void> check_distinct(std::span<const std::string> outputs) {
  const auto place = [](const std::string& path) {
    std::error_code failed;
    const auto whole = std::filesystem::weakly_canonical(path, failed);
    return failed ? std::filesystem::path(path) : whole;
  };
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    std::error_code failed;
    const auto kind = std::filesystem::status(outputs[i], failed).type();
    if (outputs[i].empty() || kind == std::filesystem::file_type::character) continue;
    for (std::size_t k = 0; k < i; ++k) {
      if (outputs[k].empty() || place(outputs[k]) != place(outputs[i])) continue;
      return fail(ErrorCode::usage, fmt::format("{}: two results cannot be one file", outputs[i]));
    }
  }
  return {};
}

}  // namespace tidepool
