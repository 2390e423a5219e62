// Preloaded into a training by bench/spill.py: opening a file for direct transfers fails as on a
// file system that has none, so that the file behind the memory goes through the page cache.
#include <dlfcn.h>
#include <fcntl.h>

#include <cerrno>
#include <cstdarg>

namespace {

template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

bool refused(int flags) {
  if ((flags & O_DIRECT) == 0) return false;
  errno = EINVAL;
  return true;
}

int open_file(const char* name, const char* path, int flags, unsigned mode) {
  return refused(flags) ? -1 : next<int(const char*, int, ...)>(name)(path, flags, mode);
}

int make_file(const char* name, char* path, int flags) {
  return refused(flags) ? -1 : next<int(char*, int)>(name)(path, flags);
}

}  // namespace

// The mode is there where a file may be made; reading it where it is not there does no harm here.
#define TIDEPOOL_MODE                           \
  va_list rest;                                 \
  va_start(rest, flags);                        \
  const unsigned mode = va_arg(rest, unsigned); \
  va_end(rest)

extern "C" int open(const char* path, int flags, ...) {
  TIDEPOOL_MODE;
  return open_file("open", path, flags, mode);
}
extern "C" int open64(const char* path, int flags, ...) {
  TIDEPOOL_MODE;
  return open_file("open64", path, flags, mode);
}
extern "C" int mkostemp(char* path, int flags) { return make_file("mkostemp", path, flags); }
extern "C" int mkostemp64(char* path, int flags) { return make_file("mkostemp64", path, flags); }
