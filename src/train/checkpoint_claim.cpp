#include "train/checkpoint_claim.h"

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "base/output_file.h"

namespace tidepool {
namespace {

enum class Content : std::uint8_t { nothing, checkpoint, other };

Content content_of(const std::string& path) {
  std::error_code unknown;
  if (!std::filesystem::is_regular_file(path, unknown)) return Content::nothing;
  constexpr std::string_view kStart = "tidepool checkpoint ";
  std::ifstream file(path, std::ios::binary);
  std::array<char, kStart.size()> start{};
  file.read(start.data(), start.size());
  const std::string_view read(start.data(), static_cast<std::size_t>(file.gcount()));
  if (read.empty()) return Content::nothing;
  return read == kStart ? Content::checkpoint : Content::other;
}

bool goes_on_from(const TrainingSpec& spec, const std::string& path) {
  std::error_code unknown;
  return !spec.resume.empty() && std::filesystem::equivalent(spec.resume, path, unknown);
}

/// Whether what is there may be replaced.
Result<void> check_replaced(const TrainingSpec& spec, const std::string& path) {
  if (goes_on_from(spec, path)) return {};
  const Content content = content_of(path);
  if (content == Content::other) {
    return fail(
        ErrorCode::usage,
        fmt::format("`checkpoint` {}: exists and is no checkpoint; it is not replaced", path));
  }
  if (content == Content::nothing || spec.overwrite) return {};
  return fail(
      ErrorCode::usage,
      fmt::format("`checkpoint` {}: is a checkpoint already, which this training would replace. Go "
                  "on from it with `resume` {}, replace it with `overwrite`, or name another file",
                  path, path));
}

/// Pipes and devices are not replaced, so that they have no lock either.
bool is_replaced(const std::string& path) {
  std::error_code unknown;
  const auto status = std::filesystem::status(path, unknown);
  return !std::filesystem::exists(status) || std::filesystem::is_regular_file(status);
}

}  // namespace

Result<FileLock> claim_checkpoint(const TrainingSpec& spec, const Program& program,
                                  Observer& observer) {
  const std::string& path = spec.checkpoint.empty() ? spec.resume : spec.checkpoint;
  if (path.empty()) return FileLock();
  const std::array inputs{spec.profile, spec.plan};
  if (auto other = check_no_input(path, inputs); !other) return fail(other.error());
  Bytes state = 0;
  for (const Tensor& t : program.tensors) state += t.persistent ? t.bytes : 0;
  if (auto writable = check_writable(path, state); !writable) return fail(writable.error());
  if (!is_replaced(path)) return FileLock();
  auto lock = FileLock::take(path);
  if (!lock) {
    return fail(lock.error().code,
                fmt::format("`{}` {}", spec.checkpoint.empty() ? "resume" : "checkpoint",
                            lock.error().message));
  }
  if (auto sound = check_replaced(spec, path); !sound) return fail(sound.error());
  if (!lock->held()) {
    observer.notice(Notice::checkpoint_not_locked,
                    fmt::format("{}: its file system has no locks; no other training may save to "
                                "it meanwhile",
                                path));
  }
  return lock;
}

}  // namespace tidepool
