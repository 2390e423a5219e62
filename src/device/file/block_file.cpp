#include "device/file/block_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <mutex>
#include <optional>
#include <utility>

#include "base/error_number.h"
#include "base/invariant.h"
#include "base/parallel.h"
#include "base/quantity.h"
#include "device/file/file_system.h"

namespace tidepool {
namespace {

constexpr Bytes kLeastPiece = kMiB;

tl::unexpected<Error> file_error(const std::string& folder, std::string_view what, int reason) {
  return fail(ErrorCode::runtime,
              fmt::format("the file in {}: cannot {}: {}", folder, what, describe_errno(reason)));
}

/// Read-only, somebody else's, or of a file system like /proc: not a fault of the disk.
bool folder_takes_none(int reason) {
  return reason == EROFS || reason == EACCES || reason == EPERM || reason == ENOENT ||
         reason == ENOTDIR || reason == EOPNOTSUPP || reason == ENOSYS;
}

/// While it lives, a file over the limit of sizes (RLIMIT_FSIZE) is an errno to this thread and no
/// signal to anybody: the kernel sends SIGXFSZ to the thread that writes, which takes it from the
/// queue. What the process does at that signal otherwise stays as it is.
class FileSizeSignalHeld {
 public:
  FileSizeSignalHeld() {
    ::sigemptyset(&signal_);
    ::sigaddset(&signal_, SIGXFSZ);
    sigset_t pending;
    was_pending_ = ::sigpending(&pending) == 0 && ::sigismember(&pending, SIGXFSZ) == 1;
    held_ = ::pthread_sigmask(SIG_BLOCK, &signal_, &before_) == 0;
  }
  FileSizeSignalHeld(const FileSizeSignalHeld&) = delete;
  FileSizeSignalHeld& operator=(const FileSizeSignalHeld&) = delete;
  ~FileSizeSignalHeld() {
    if (!held_) return;
    const int reason = errno;
    constexpr timespec kAtOnce{0, 0};
    if (!was_pending_) ::sigtimedwait(&signal_, nullptr, &kAtOnce);
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = reason;
  }

 private:
  sigset_t signal_{};
  sigset_t before_{};
  bool was_pending_ = false;  ///< somebody else's
  bool held_ = false;
};

Bytes room_of(const SpillOptions& options, Bytes free) {
  const Bytes spared = std::max(free / 20, kGiB);
  return options.limit > 0 ? std::min(options.limit, free) : std::max<Bytes>(free - spared, 0);
}

}  // namespace

struct BlockFile::State {
  State(std::string in, const FaultPlan& plan) : folder(std::move(in)), faults(plan) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (fd >= 0) ::close(fd);
  }

  Result<void> take(const SpillOptions& options, Bytes bytes);
  Result<void> find_whether_direct();
  void copy(bool write, Bytes offset, std::byte* memory, Bytes bytes, const char* what);
  void transfer(bool write, Bytes offset, std::byte* memory, Bytes bytes, const char* what);
  void leave_cache(bool write, Bytes offset, Bytes bytes, const char* what) const;
  [[noreturn]] void fail_transfer(bool write, Bytes offset, Bytes bytes, const char* what,
                                  int reason) const;

  std::string folder;
  TransferFaults faults;
  int fd = -1;
  Bytes size = 0;
  bool direct = false;
  std::string system;  ///< "ext4"
  std::string warning;
  int depth = 1;
  /// For each direction: copies of one direction that come at the same time share it in turn.
  struct Helpers {
    std::mutex mutex;
    std::unique_ptr<ThreadPool> threads;
  } helpers[2];
};

/// Compares first: a fallocate that fails takes all that is free until the file is closed.
Result<void> BlockFile::State::take(const SpillOptions& options, Bytes bytes) {
  const auto free = free_bytes(fd);
  if (!free) return file_error(folder, "ask what is free", errno);
  if (const Bytes room = room_of(options, *free); bytes > room) {
    const std::string why = options.limit > 0 && options.limit < *free
                                ? fmt::format("it may have {}", format_bytes(options.limit))
                                : fmt::format(
                                      "{} are free there, of which the larger of 5 % and "
                                      "1 GiB stays free unless the file's limit is stated",
                                      format_bytes(*free));
    return fail(Error{ErrorCode::infeasible,
                      fmt::format("the disk is too small: the file in {} needs {} B ({}); {}",
                                  folder, bytes, format_bytes_up(bytes), why),
                      bytes, false});
  }
  size = bytes;
  if (size == 0) return {};
  int reason = faults.allocate(bytes);
  while (reason == 0 && ::fallocate(fd, 0, 0, bytes) != 0) {
    if (errno != EINTR) reason = errno;
    if (reason == EOPNOTSUPP) {
      reason = ::ftruncate(fd, bytes) != 0 ? errno : 0;
      break;
    }
  }
  if (reason != 0) {
    return file_error(folder, fmt::format("take {} of disk", format_bytes(bytes)), reason);
  }
  return {};
}

/// An O_DIRECT that opens is no proof: some file systems take it and use the page cache.
Result<void> BlockFile::State::find_whether_direct() {
  const int flags = ::fcntl(fd, F_GETFL);
  if ((flags & O_DIRECT) != 0 && takes_direct_transfers(fd, kAlignment)) {
    direct = true;
    return {};
  }
  if ((flags & O_DIRECT) != 0 && ::fcntl(fd, F_SETFL, flags & ~O_DIRECT) != 0) {
    return file_error(folder, "use the page cache", errno);
  }
  warning = fmt::format(
      "{} in {} has no direct transfers of blocks of {}: copies go through the page cache, slower",
      system, folder, format_bytes(kAlignment));
  return {};
}

Result<Bytes> BlockFile::room(const SpillOptions& options) {
  const auto system = file_system_of(options.folder);
  if (!system) return fail(system.error());
  return room_of(options, system->free);
}

Result<BlockFile> BlockFile::open(const SpillOptions& options, Bytes bytes,
                                  const FaultPlan& faults) {
  const auto system = file_system_of(options.folder);
  if (!system) return fail(system.error());
  const FileSizeSignalHeld held;
  auto state = std::make_unique<State>(options.folder, faults);
  state->system = system->name;
  state->depth = options.depth;
  state->fd = open_direct(options.folder);
  if (state->fd < 0) {
    const int reason = errno;
    auto error = file_error(options.folder, "create it", reason);
    if (folder_takes_none(reason)) error.value().code = ErrorCode::usage;
    return error;
  }
  if (system->copies_on_write) stop_copying_on_write(state->fd);
  if (auto taken = state->take(options, align_up(bytes, kAlignment)); !taken) {
    return fail(taken.error());
  }
  if (auto found = state->find_whether_direct(); !found) return fail(found.error());
  if (system->layers && stays_in_memory(state->fd, kAlignment)) {
    return in_memory(options.folder, "below an overlay");
  }
  return BlockFile(std::move(state));
}

BlockFile::BlockFile(std::unique_ptr<State> state) : state_(std::move(state)) {}
BlockFile::~BlockFile() = default;
BlockFile::BlockFile(BlockFile&& other) noexcept = default;
BlockFile& BlockFile::operator=(BlockFile&& other) noexcept = default;

Bytes BlockFile::size() const { return state_->size; }
bool BlockFile::direct() const { return state_->direct; }
int BlockFile::descriptor() const { return state_->fd; }
const std::string& BlockFile::warning() const { return state_->warning; }
std::string BlockFile::kind() const {
  return fmt::format("{}, {}", state_->system,
                     state_->direct ? "direct" : "through the page cache");
}
std::optional<Bytes> BlockFile::cached() const { return cached_bytes(state_->fd, state_->size); }

void BlockFile::set_depth(int depth) {
  invariant(depth >= 1 && depth <= SpillOptions::kMostDepth, "a depth is of a few transfers");
  state_->depth = depth;
}

void BlockFile::State::fail_transfer(bool write, Bytes offset, Bytes bytes, const char* what,
                                     int reason) const {
  throw DeviceError(fmt::format("the file in {}: cannot {} {} at offset {}{}: {}", folder,
                                write ? "write" : "read", format_bytes(bytes), offset,
                                what != nullptr ? fmt::format(" ('{}')", what) : "",
                                describe_errno(reason)));
}

/// One piece. Short transfers go on, interrupted ones are repeated. A read that fails is tried once
/// more; a write is not: what it left behind is unknown.
void BlockFile::State::transfer(bool write, Bytes offset, std::byte* memory, Bytes bytes,
                                const char* what) {
  std::optional<FileSizeSignalHeld> held;
  if (write) held.emplace();
  bool tried_again = false;
  for (Bytes done = 0; done < bytes;) {
    const TransferFaults::Fault fault = faults.next(write);
    const Bytes asked = std::max(kAlignment, std::min(bytes - done, fault.most) & -kAlignment);
    const auto count = static_cast<std::size_t>(std::min(asked, bytes - done));
    ssize_t moved = -1;
    if (fault.error != 0) {
      errno = fault.error;
    } else {
      moved = write ? ::pwrite(fd, memory + done, count, offset + done)
                    : ::pread(fd, memory + done, count, offset + done);
    }
    if (moved > 0) {
      // What follows starts at a block again.
      done += moved >= kAlignment ? Bytes{moved} & -kAlignment : Bytes{moved};
      continue;
    }
    const int reason = moved == 0 ? EIO : errno;  // 0: past the end, there is none to get to
    if (reason == EINTR) continue;
    if (write || tried_again) fail_transfer(write, offset + done, bytes - done, what, reason);
    tried_again = true;
  }
}

/// The page cache would keep what the arena has no room for.
void BlockFile::State::leave_cache(bool write, Bytes offset, Bytes bytes, const char* what) const {
  if (write && ::sync_file_range(fd, offset, bytes,
                                 SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
                                     SYNC_FILE_RANGE_WAIT_AFTER) != 0) {
    fail_transfer(write, offset, bytes, what, errno);
  }
  ::posix_fadvise(fd, offset, bytes, POSIX_FADV_DONTNEED);
}

void BlockFile::State::copy(bool write, Bytes offset, std::byte* memory, Bytes bytes,
                            const char* what) {
  // Some file systems would take it, and slowly; all must refuse the same plans.
  const auto address = static_cast<Bytes>(reinterpret_cast<std::intptr_t>(memory));
  if ((offset | bytes | address) % kAlignment != 0) {
    fail_transfer(write, offset, bytes, what, EINVAL);
  }
  invariant(offset >= 0 && offset + bytes <= size, "copies lie inside the file");
  const Bytes share = align_up(bytes / depth, kAlignment);
  const Bytes piece = depth > 1 ? std::clamp(share, kLeastPiece, kPiece) : kPiece;
  const auto one = [&](std::size_t i) {
    const Bytes from = static_cast<Bytes>(i) * piece;
    transfer(write, offset + from, memory + from, std::min(piece, bytes - from), what);
  };
  const auto pieces = static_cast<std::size_t>((bytes + piece - 1) / piece);
  if (depth == 1 || pieces == 1) {
    for (std::size_t i = 0; i < pieces; ++i) one(i);
  } else {
    Helpers& own = helpers[write ? 1 : 0];
    const std::lock_guard lock(own.mutex);
    const auto threads = static_cast<std::size_t>(depth);
    if (!own.threads || own.threads->threads() != threads) {
      own.threads = std::make_unique<ThreadPool>(threads);
    }
    own.threads->each(pieces, one);
  }
  if (!direct) leave_cache(write, offset, bytes, what);
}

void BlockFile::write(Bytes offset, const std::byte* from, Bytes bytes, const char* what) {
  // Only read from: the calls of both directions share their code.
  state_->copy(true, offset, const_cast<std::byte*>(from), bytes, what);
}

void BlockFile::read(Bytes offset, std::byte* to, Bytes bytes, const char* what) {
  state_->copy(false, offset, to, bytes, what);
}

}  // namespace tidepool
