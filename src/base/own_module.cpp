#include "base/own_module.h"

#include <dlfcn.h>

namespace tidepool {
namespace {

namespace fs = std::filesystem;

/// The file that this code was loaded from.
fs::path this_library() {
  Dl_info info{};
  const auto* here = reinterpret_cast<const void*>(&this_library);
  if (::dladdr(here, &info) == 0 || info.dli_fname == nullptr) return {};
  return info.dli_fname;
}

}  // namespace

fs::path own_module(const std::string& file, const fs::path& built) {
  std::error_code unknown;
  for (const fs::path& owner : {this_library(), fs::path("/proc/self/exe")}) {
    const fs::path real = fs::canonical(owner, unknown);
    if (unknown) continue;
    const fs::path folder = real.parent_path();
    // lib, lib/ARCHITECTURE, and bin or a build folder.
    for (const char* way : {"tidepool", "../tidepool", "../lib/tidepool"}) {
      fs::path path = folder / way / file;
      if (fs::is_regular_file(path, unknown)) return path;
    }
  }
  return built;
}

void* load_own_module(const fs::path& path, const char* function, std::string& why_not) {
  void* const library = ::dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
  void* const found = library == nullptr ? nullptr : ::dlsym(library, function);
  if (found != nullptr) return found;
  const char* const reason = ::dlerror();
  why_not = reason == nullptr ? path.string() : reason;
  return nullptr;
}

}  // namespace tidepool
