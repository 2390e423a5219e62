#include "device/cpu/guarded_memory.h"

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

}  // namespace

GuardedMemory::GuardedMemory(Bytes bytes, std::string_view what) {
  const auto page = static_cast<Bytes>(::sysconf(_SC_PAGESIZE));
  const Bytes usable = align_up(bytes, page);
  const Bytes available = available_memory();
  if (available >= 0 && usable > available) {
    throw DeviceError(fmt::format("cannot allocate the {} of {}: only {} of memory are available",
                                  what, format_bytes(bytes), format_bytes(available)));
  }
  mapped_ = static_cast<std::size_t>(usable + page);
  void* memory =
      ::mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    const int reason = errno;
    mapped_ = 0;
    throw DeviceError(fmt::format("cannot allocate the {} of {}: {}", what, format_bytes(bytes),
                                  std::strerror(reason)));
  }
  data_ = static_cast<std::byte*>(memory);
  std::memset(data_, 0, static_cast<std::size_t>(usable));
  ::mprotect(data_ + usable, static_cast<std::size_t>(page), PROT_NONE);
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
