// Preloaded into any program: its large blocks come from a Session's FixedPool
// (session/fixed_pool.h), the others from the C library as ever. At the end of the process the
// pool's report goes to the file that POOL_MALLOC_REPORT names, as one line of JSON.
//
//   POOL_MALLOC_REPORT=report.json LD_PRELOAD=build/release/bench/libpool_malloc.so program ...
#include <dlfcn.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "session/fixed_pool.h"

extern "C" {
void* __libc_malloc(std::size_t bytes);
void __libc_free(void* address);
void* __libc_calloc(std::size_t count, std::size_t bytes);
void* __libc_realloc(void* address, std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);
}

namespace {

using tidepool::Bytes;
using tidepool::FixedPool;

constexpr std::size_t kLarge = std::size_t{64} << 10;
constexpr Bytes kAddressSpace = Bytes{64} << 30;

/// The pool's own blocks are the C library's.
thread_local bool inside = false;

struct Inside {
  Inside() { inside = true; }
  ~Inside() { inside = false; }
};

/// Never destroyed: blocks are freed until the very end.
FixedPool* pool() {
  const bool was_inside = std::exchange(inside, true);
  static FixedPool* const the_pool = new FixedPool({.budget = kAddressSpace});
  inside = was_inside;
  return the_pool;
}

void* from_pool(std::size_t bytes) {
  const Inside guard;
  return pool()->allocate(static_cast<Bytes>(bytes));
}

bool give_back(void* address) {
  const Inside guard;
  return pool()->free(address);
}

bool may_be_ours(const void* address) { return pool()->contains(address); }

struct ReportAtExit {
  ReportAtExit() { pool()->reset_peaks(); }
  ~ReportAtExit() {
    const Inside guard;
    const char* const path = std::getenv("POOL_MALLOC_REPORT");
    std::FILE* const file = path == nullptr ? nullptr : std::fopen(path, "w");
    if (file == nullptr) return;
    const tidepool::FixedPoolReport r = pool()->report();
    std::fprintf(file,
                 "{\"served\": %lld, \"others\": %lld, \"iterations\": %lld, \"left_plans\": %lld, "
                 "\"iteration_mallocs\": %lld, \"peak_load\": %lld, \"footprint\": %lld, "
                 "\"planned_bytes\": %lld, \"planned_load\": %lld}\n",
                 static_cast<long long>(r.served), static_cast<long long>(r.others),
                 static_cast<long long>(r.iterations), static_cast<long long>(r.left_plans),
                 static_cast<long long>(r.iteration_mallocs), static_cast<long long>(r.peak_load),
                 static_cast<long long>(r.footprint), static_cast<long long>(r.planned_bytes),
                 static_cast<long long>(r.planned_load));
    std::fclose(file);
  }
};
ReportAtExit report_at_exit;

}  // namespace

extern "C" {

void* malloc(std::size_t bytes) {
  if (inside || bytes < kLarge) return __libc_malloc(bytes);
  void* const address = from_pool(bytes);
  if (address == nullptr) errno = ENOMEM;
  return address;
}

void free(void* address) {
  if (address == nullptr) return;
  if (inside || !may_be_ours(address)) return __libc_free(address);
  if (!give_back(address)) std::abort();
}

void* calloc(std::size_t count, std::size_t bytes) {
  if (inside || count == 0 || bytes < kLarge / count) return __libc_calloc(count, bytes);
  if (bytes > SIZE_MAX / count) {
    errno = ENOMEM;
    return nullptr;
  }
  void* const address = malloc(count * bytes);
  if (address != nullptr) std::memset(address, 0, count * bytes);
  return address;
}

void* realloc(void* address, std::size_t bytes) {
  if (address == nullptr) return malloc(bytes);
  if (inside || !may_be_ours(address)) return __libc_realloc(address, bytes);
  const auto had = static_cast<std::size_t>(pool()->bytes(address));
  void* const moved = malloc(bytes);
  if (moved == nullptr) return nullptr;
  std::memcpy(moved, address, had < bytes ? had : bytes);
  free(address);
  return moved;
}

int posix_memalign(void** out, std::size_t alignment, std::size_t bytes) {
  void* const address = inside || bytes < kLarge || alignment > 64
                            ? __libc_memalign(alignment, bytes)
                            : from_pool(bytes);
  if (address == nullptr) return ENOMEM;
  *out = address;
  return 0;
}

void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  void* address = nullptr;
  const int error = posix_memalign(&address, alignment, bytes);
  if (error != 0) errno = error;
  return address;
}

void* memalign(std::size_t alignment, std::size_t bytes) { return aligned_alloc(alignment, bytes); }

std::size_t malloc_usable_size(void* address) {
  using Usable = std::size_t (*)(void*);
  static const auto own = reinterpret_cast<Usable>(::dlsym(RTLD_NEXT, "malloc_usable_size"));
  if (address == nullptr) return 0;
  return may_be_ours(address) ? static_cast<std::size_t>(pool()->bytes(address)) : own(address);
}
}
