#include "train/checkpoint_claim.h"

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <string>

#include "base/file.h"
#include "base/output_file.h"
#include "nn/data/checkpoint.h"

namespace tidepool {
namespace {

bool holds_nothing(const std::string& path) {
  std::error_code unknown;
  return !std::filesystem::is_regular_file(path, unknown) ||
         std::filesystem::file_size(path, unknown) == 0;
}

bool goes_on_from(const TrainingSpec& spec, const std::string& path) {
  std::error_code unknown;
  return !spec.resume.empty() && std::filesystem::equivalent(spec.resume, path, unknown);
}

/// Whether what is there may be replaced.
Result<void> check_replaced(const TrainingSpec& spec, const std::string& path) {
  if (goes_on_from(spec, path)) return {};
  if (holds_nothing(path)) return {};
  if (!nn::is_checkpoint(path)) {
    return fail(
        ErrorCode::usage,
        fmt::format("`checkpoint` {}: exists and is no checkpoint; it is not replaced", path));
  }
  if (spec.overwrite) return {};
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
  auto lock = FileLock::take(followed(path));
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
