// Linked into the programs of the bundle (cmake/portable.cmake): what they take from glibc 2.36 and
// the glibc they are linked against lacks.
#include <sys/random.h>

#include <cstdint>

extern "C" {

// Since 2.32; true while a program has one thread, so that reference counts need no atomics. False
// is right at any time.
__attribute__((visibility("hidden"))) char __libc_single_threaded = 0;

// Since 2.36; libstdc++ asks it where a program makes a std::random_device.
__attribute__((visibility("hidden"))) std::uint32_t arc4random() noexcept {
  std::uint32_t value = 0;
  while (::getrandom(&value, sizeof value, 0) != sizeof value) {
  }
  return value;
}
}
