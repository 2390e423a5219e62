#include "cuda_standin/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>

#include "cuda_standin/engine.h"

namespace standin {
namespace {

constexpr std::size_t kPage = 4096;
/// What a real driver takes at least for an allocation.
constexpr std::size_t kGranularity = std::size_t{2} << 20;
constexpr std::size_t kMostRubbish = std::size_t{32} << 20;
constexpr std::size_t kMostProtected = std::size_t{16} << 20;
constexpr std::size_t kMostPinned = std::size_t{64} << 30;

struct Allocation {
  std::size_t bytes = 0;
  int gpu = 0;
  bool portable = false;
};
using Allocations = std::map<const char*, Allocation>;

Allocations& device() {
  static auto& all = *new Allocations;
  return all;
}
Allocations& pinned() {
  static auto& all = *new Allocations;
  return all;
}

constexpr std::int64_t kContext = std::int64_t{300} << 20;
std::array<std::atomic<std::int64_t>, kMostGpus> used;  // beside the context

std::size_t rounded(std::size_t bytes, std::size_t to) { return (bytes + to - 1) / to * to; }

/// With one page behind that nobody may touch.
void* map(std::size_t bytes, int rubbish) {
  const std::size_t size = rounded(bytes, kPage);
  void* start = ::mmap(nullptr, size + kPage, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (start == MAP_FAILED) return nullptr;
  ::mprotect(static_cast<char*>(start) + size, kPage, PROT_NONE);
  std::memset(start, rubbish, std::min(bytes, kMostRubbish));
  return start;
}

bool release(Allocations& all, void* start) {
  const auto found = all.find(static_cast<const char*>(start));
  if (found == all.end()) return false;
  ::munmap(start, rounded(found->second.bytes, kPage) + kPage);
  all.erase(found);
  return true;
}

bool inside(const Allocations& all, int gpu, const void* start, std::size_t bytes) {
  const char* from = static_cast<const char*>(start);
  auto next = all.upper_bound(from);
  if (next == all.begin()) return false;
  --next;
  return from + bytes <= next->first + next->second.bytes &&
         (next->second.gpu == gpu || next->second.portable);
}

void protect(int gpu, int protection) {
  static const bool wanted = [] {
    const char* seed = std::getenv("STANDIN_SEED");
    return std::getenv("STANDIN_PROTECT") != nullptr ||
           (seed != nullptr && std::atoi(seed) % 3 == 0);
  }();
  if (!wanted) return;
  for (const auto& [start, allocation] : device()) {
    if (allocation.gpu == gpu && allocation.bytes <= kMostProtected) {
      ::mprotect(const_cast<char*>(start), rounded(allocation.bytes, kPage), protection);
    }
  }
}

}  // namespace

void* allocate_device(int gpu, std::size_t bytes) {
  const std::size_t taken = rounded(bytes, kGranularity);
  if (taken > kTotalMemory - used_device_memory(gpu)) return nullptr;
  void* start = map(bytes, 0xff);
  if (start == nullptr) return nullptr;
  device()[static_cast<const char*>(start)] = {bytes, gpu};
  count_device_memory(gpu, static_cast<std::int64_t>(taken));
  lock_device_memory(gpu);
  return start;
}

void* allocate_pinned(int gpu, std::size_t bytes, bool portable) {
  if (bytes > kMostPinned) return nullptr;
  void* start = map(bytes, 0x7b);
  if (start != nullptr) pinned()[static_cast<const char*>(start)] = {bytes, gpu, portable};
  return start;
}

bool free_device(void* start) {
  const auto found = device().find(static_cast<const char*>(start));
  if (found == device().end()) return false;
  const Allocation& all = found->second;
  count_device_memory(all.gpu, -static_cast<std::int64_t>(rounded(all.bytes, kGranularity)));
  return release(device(), start);
}

bool free_pinned(void* start) { return release(pinned(), start); }

std::size_t used_device_memory(int gpu) {
  return static_cast<std::size_t>(kContext + used.at(static_cast<std::size_t>(gpu)).load());
}

bool in_device_memory(int gpu, const void* start, std::size_t bytes) {
  return inside(device(), gpu, start, bytes);
}
bool in_pinned_memory(int gpu, const void* start, std::size_t bytes) {
  return inside(pinned(), gpu, start, bytes);
}

void fill_device(void* start, int value, std::size_t bytes) {
  const auto at = reinterpret_cast<std::uintptr_t>(start);
  const std::uintptr_t first = rounded(at, kPage), last = (at + bytes) / kPage * kPage;
  if (value != 0 || last <= first) {
    std::memset(start, value, bytes);
    return;
  }
  // Pages given back to the kernel are zeroes when they are next used.
  std::memset(start, 0, first - at);
  ::madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
  std::memset(reinterpret_cast<void*>(last), 0, at + bytes - last);
}

void unlock_device_memory(int gpu) { protect(gpu, PROT_READ | PROT_WRITE); }
void lock_device_memory(int gpu) { protect(gpu, PROT_NONE); }

void count_device_memory(int gpu, std::int64_t bytes) {
  used.at(static_cast<std::size_t>(gpu)) += bytes;
}

void require_device_range(const void* start, std::size_t bytes, const char* what) {
  const std::lock_guard lock(Engine::get().mutex);
  if (bytes > 0 && !in_device_memory(current_gpu(), start, bytes)) {
    violation("%s: %zu bytes at %p are not memory of GPU %d", what, bytes, start, current_gpu());
  }
}

}  // namespace standin
