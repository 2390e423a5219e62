#include "device/file/guarded_memory.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "device/device.h"

namespace tidepool {
namespace {

/// Memory the kernel thinks it can still give out, so that touching an arena fails with a message
/// and not with the out-of-memory killer. Negative: unknown.
Bytes available_memory() {
  const long pages = ::sysconf(_SC_AVPHYS_PAGES);
  const long page = ::sysconf(_SC_PAGESIZE);
  Bytes available = pages < 0 || page < 0 ? -1 : Bytes{pages} * page;
  if (std::FILE* file = std::fopen("/proc/meminfo", "r")) {
    char line[128];
    long kilobytes = 0;
    while (std::fgets(line, sizeof line, file) != nullptr) {
      if (std::sscanf(line, "MemAvailable: %ld kB", &kilobytes) == 1) available = kilobytes * 1024;
    }
    std::fclose(file);
  }
  return available;
}

constexpr Bytes kHugePage = 2 * kMiB;
constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE, newer than the headers of some systems

Bytes bytes_of_page() { return static_cast<Bytes>(::sysconf(_SC_PAGESIZE)); }

/// Null and errno where there is none.
std::byte* map_aligned(Bytes bytes, Bytes alignment, int flags) {
  const Bytes more = bytes + alignment;
  void* const map = ::mmap(nullptr, static_cast<std::size_t>(more), PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
  if (map == MAP_FAILED) return nullptr;
  const auto address = static_cast<Bytes>(reinterpret_cast<std::intptr_t>(map));
  const Bytes before = align_up(address, alignment) - address;
  auto* const begin = static_cast<std::byte*>(map) + before;
  if (before > 0) ::munmap(map, static_cast<std::size_t>(before));
  ::munmap(begin + bytes, static_cast<std::size_t>(more - before - bytes));
  return begin;
}

}  // namespace

GuardedMemory::GuardedMemory(Bytes bytes, std::string_view what, Pages pages) {
  const Bytes page = bytes_of_page();
  const Bytes usable = align_up(bytes, page);
  const Bytes available = available_memory();
  if (pages != Pages::promised && available >= 0 && usable > available) {
    throw DeviceError(fmt::format("cannot allocate the {} of {}: only {} of memory are available",
                                  what, format_bytes(bytes), format_bytes(available)));
  }
  const Bytes alignment = pages == Pages::touched ? page : kHugePage;
  auto* const memory =
      map_aligned(usable + page, alignment, pages == Pages::promised ? MAP_NORESERVE : 0);
  if (memory == nullptr) {
    throw DeviceError(fmt::format("cannot allocate the {} of {}: {}", what, format_bytes(bytes),
                                  std::strerror(errno)));
  }
  data_ = memory;
  mapped_ = static_cast<std::size_t>(usable + page);
  const auto size = static_cast<std::size_t>(usable);
  ::mprotect(data_ + usable, static_cast<std::size_t>(page), PROT_NONE);
  if (pages == Pages::touched) {
    std::memset(data_, 0, size);
  } else if (size > 0) {
    ::madvise(data_, size, MADV_HUGEPAGE);  // without them it is slower, nothing else
  }
}

void GuardedMemory::populate(Bytes offset, Bytes bytes) {
  if (bytes <= 0) return;
  const Bytes page = bytes_of_page();
  const Bytes begin = offset & -page;
  const Bytes end = align_up(offset + bytes, page);
  const auto size = static_cast<std::size_t>(end - begin);
  if (::madvise(data_ + begin, size, kPopulateWrite) == 0) return;
  if (errno != EINVAL) {
    throw DeviceError(fmt::format("cannot take {} of memory: {}", format_bytes(end - begin),
                                  std::strerror(errno)));
  }
  for (Bytes at = begin; at < end; at += page) {  // a kernel before 5.14
    auto* const byte = reinterpret_cast<volatile unsigned char*>(data_ + at);
    *byte = *byte;
  }
}

void GuardedMemory::discard(Bytes offset, Bytes bytes) {
  const Bytes page = bytes_of_page();
  const Bytes begin = align_up(offset, page);
  const Bytes end = (offset + bytes) & -page;
  if (end <= begin) return;
  ::madvise(data_ + begin, static_cast<std::size_t>(end - begin), MADV_DONTNEED);
}

GuardedMemory::~GuardedMemory() {
  if (data_ != nullptr) ::munmap(data_, mapped_);
}

GuardedMemory::GuardedMemory(GuardedMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), mapped_(std::exchange(other.mapped_, 0)) {}

GuardedMemory& GuardedMemory::operator=(GuardedMemory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(mapped_, other.mapped_);
  return *this;
}

}  // namespace tidepool
