#include "device/file/file_system.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "base/error_number.h"
#include "base/unlinked_file.h"

namespace tidepool {
namespace {

struct KnownSystem {
  std::uint32_t magic;
  const char* name;
  bool in_memory;
};

constexpr std::uint32_t kXfs = 0x58465342;
constexpr std::uint32_t kZfs = 0x2fc12fc1;
constexpr std::array kKnownSystems{
    KnownSystem{EXT4_SUPER_MAGIC, "ext4", false},
    KnownSystem{kXfs, "xfs", false},
    KnownSystem{BTRFS_SUPER_MAGIC, "btrfs", false},
    KnownSystem{OVERLAYFS_SUPER_MAGIC, "overlay", false},
    KnownSystem{F2FS_SUPER_MAGIC, "f2fs", false},
    KnownSystem{NFS_SUPER_MAGIC, "nfs", false},
    KnownSystem{FUSE_SUPER_MAGIC, "fuse", false},
    KnownSystem{kZfs, "zfs", false},
    KnownSystem{TMPFS_MAGIC, "tmpfs", true},
    KnownSystem{RAMFS_MAGIC, "ramfs", true},
    KnownSystem{HUGETLBFS_MAGIC, "hugetlbfs", true},
};

// Newer than the headers of some systems.
constexpr unsigned kDirectAlignment = 0x2000;  // STATX_DIOALIGN, Linux 6.1
constexpr long kCachestat = 451;               // Linux 6.5
struct CachestatRange {
  std::uint64_t offset, bytes;
};
struct Cachestat {
  std::uint64_t cached, dirty, writeback, evicted, recently_evicted;
};

Bytes page_bytes() { return static_cast<Bytes>(::sysconf(_SC_PAGESIZE)); }

std::optional<Bytes> cached_by_mincore(int fd, Bytes bytes) {
  const auto size = static_cast<std::size_t>(bytes);
  void* const map = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, 0);
  if (map == MAP_FAILED) return std::nullopt;
  std::vector<unsigned char> pages(
      static_cast<std::size_t>(align_up(bytes, page_bytes()) / page_bytes()));
  const bool told = ::mincore(map, size, pages.data()) == 0;
  ::munmap(map, size);
  if (!told) return std::nullopt;
  Bytes cached = 0;
  for (const unsigned char page : pages) cached += (page & 1U) != 0 ? page_bytes() : 0;
  return cached;
}

/// What the file system says; nothing where it, or the kernel, does not.
std::optional<Bytes> stated_direct_alignment(int fd) {
  struct statx status {};
  if (::statx(fd, "", AT_EMPTY_PATH, kDirectAlignment, &status) != 0) return std::nullopt;
  if ((status.stx_mask & kDirectAlignment) == 0) return std::nullopt;
  return std::max<Bytes>(status.stx_dio_mem_align, status.stx_dio_offset_align);
}

/// The first block of the file is zeros.
bool write_block(int fd, Bytes alignment) {
  const auto bytes = static_cast<std::size_t>(alignment);
  const std::unique_ptr<void, decltype(&std::free)> block(std::aligned_alloc(bytes, bytes),
                                                          &std::free);
  if (!block) return false;
  std::memset(block.get(), 0, bytes);
  return ::pwrite(fd, block.get(), bytes, 0) == static_cast<ssize_t>(bytes);
}

/// Writes a block and looks whether it is in the page cache.
bool passes_by_page_cache(int fd, Bytes alignment) {
  return write_block(fd, alignment) && cached_bytes(fd, alignment) == 0;
}

}  // namespace

tl::unexpected<Error> in_memory(const std::string& folder, std::string_view what) {
  return fail(
      ErrorCode::usage,
      fmt::format("{} is in memory ({}): a file there takes what it is to save", folder, what));
}

Result<FileSystem> file_system_of(const std::string& folder) {
  struct statfs status {};
  if (::statfs(folder.c_str(), &status) != 0) {
    return fail(ErrorCode::usage,
                fmt::format("the folder {} cannot be used: {}", folder, describe_errno(errno)));
  }
  FileSystem system;
  const auto magic = static_cast<std::uint32_t>(status.f_type);
  system.name = fmt::format("file system {:#x}", magic);
  for (const KnownSystem& known : kKnownSystems) {
    if (known.magic != magic) continue;
    system.name = known.name;
    if (known.in_memory) {
      return in_memory(folder, known.name);
    }
  }
  system.copies_on_write = magic == BTRFS_SUPER_MAGIC;
  system.layers = magic == OVERLAYFS_SUPER_MAGIC;
  struct stat file {};
  if (::stat(folder.c_str(), &file) != 0 || !S_ISDIR(file.st_mode)) {
    return fail(ErrorCode::usage, fmt::format("{} is no folder", folder));
  }
  system.free = static_cast<Bytes>(status.f_bavail) * static_cast<Bytes>(status.f_frsize);
  return system;
}

int open_direct(const std::string& folder) {
  const int fd = open_unnamed(folder, O_DIRECT);
  return fd < 0 && errno == EINVAL ? open_unnamed(folder, 0) : fd;
}

bool stop_copying_on_write(int fd) {
  int flags = 0;
  if (::ioctl(fd, FS_IOC_GETFLAGS, &flags) != 0) return false;
  flags |= FS_NOCOW_FL;
  return ::ioctl(fd, FS_IOC_SETFLAGS, &flags) == 0;
}

bool takes_direct_transfers(int fd, Bytes alignment) {
  if (const auto stated = stated_direct_alignment(fd)) return *stated > 0 && *stated <= alignment;
  struct statfs status {};
  if (::fstatfs(fd, &status) != 0) return false;
  int flags = 0;
  // With checksums it falls back to the page cache and leaves no page there.
  if (static_cast<std::uint32_t>(status.f_type) == BTRFS_SUPER_MAGIC &&
      (::ioctl(fd, FS_IOC_GETFLAGS, &flags) != 0 || (flags & FS_NOCOW_FL) == 0)) {
    return false;
  }
  return passes_by_page_cache(fd, alignment);
}

bool stays_in_memory(int fd, Bytes alignment) {
  if (!write_block(fd, alignment)) return false;
  drop_cached(fd, 0, alignment);
  return cached_bytes(fd, alignment).value_or(0) > 0;
}

std::optional<Bytes> free_bytes(int fd) {
  struct statvfs status {};
  if (::fstatvfs(fd, &status) != 0) return std::nullopt;
  return static_cast<Bytes>(status.f_bavail) * static_cast<Bytes>(status.f_frsize);
}

std::optional<Bytes> cached_bytes(int fd, Bytes bytes) {
  if (bytes == 0) return 0;
  CachestatRange range{0, static_cast<std::uint64_t>(bytes)};
  Cachestat status{};
  const auto mapped = cached_by_mincore(fd, bytes);
  if (::syscall(kCachestat, fd, &range, &status, 0) != 0) return mapped;
  // Of an overlay it does not see the pages of the file below.
  return std::max(static_cast<Bytes>(status.cached) * page_bytes(), mapped.value_or(0));
}

}  // namespace tidepool
