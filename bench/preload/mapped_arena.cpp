// Preloaded into a training by bench/spill.py: every large block of anonymous memory, which is the
// arena, becomes a shared mapping of a file without a name in $TIDEPOOL_MAPPED_FOLDER. What then
// leaves memory, and when, is the kernel's choice: the rival of a plan.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace {

constexpr std::size_t kLarge = std::size_t{48} << 20;

void* system_map(void* at, std::size_t bytes, int access, int flags, int file, off_t offset) {
  // The kernel's call takes and returns a word; the C library's wrapper is this very function.
  const long found = ::syscall(SYS_mmap, at, bytes, access, flags, file, offset);
  return reinterpret_cast<void*>(static_cast<std::intptr_t>(found));  // NOLINT
}

/// -1 where there is none.
int unnamed_file(std::size_t bytes) {
  const char* const folder = std::getenv("TIDEPOOL_MAPPED_FOLDER");
  if (folder == nullptr) return -1;
  const int file = ::open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (file < 0 || ::fallocate(file, 0, 0, static_cast<off_t>(bytes)) == 0) return file;
  ::close(file);
  return -1;
}

}  // namespace

extern "C" void* mmap(void* at, std::size_t bytes, int access, int flags, int file, off_t offset) {
  const bool anonymous = (flags & MAP_ANONYMOUS) != 0 && (flags & MAP_PRIVATE) != 0;
  const bool for_data = access == (PROT_READ | PROT_WRITE) && (flags & MAP_NORESERVE) == 0;
  if (at != nullptr || !anonymous || !for_data || bytes < kLarge) {
    return system_map(at, bytes, access, flags, file, offset);
  }
  const int own = unnamed_file(bytes);
  if (own < 0) {
    std::fputs("mapped_arena: no file for the arena\n", stderr);
    std::_Exit(1);
  }
  void* const map = system_map(nullptr, bytes, access, MAP_SHARED, own, 0);
  ::close(own);
  return map;
}

extern "C" void* mmap64(void* at, std::size_t bytes, int access, int flags, int file,
                        off_t offset) {
  return mmap(at, bytes, access, flags, file, offset);
}
