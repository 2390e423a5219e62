#include "device/cuda/libraries.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>

#include "device/cuda/check.h"
#include "device/device.h"

namespace tidepool::cuda {
namespace {

/// A library by its versioned name: where the loader looks, then in the toolkit this was built
/// with.
void* open_library(const std::string& name) {
  if (void* library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
  const char* reason = ::dlerror();
  const std::string first = reason == nullptr ? name : reason;
  const std::string path = fmt::format("{}/{}", TIDEPOOL_CUDA_LIBRARY_FOLDER, name);
  if (void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
  throw DeviceError(fmt::format("{}; put its folder into LD_LIBRARY_PATH", first));
}

template <class Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  if (function == nullptr) throw DeviceError(fmt::format("a CUDA library lacks {}", name));
}

#define TIDEPOOL_FIND_FUNCTION(name) find(library, #name, api.name);
Cudnn load_cudnn() {
  void* library = open_library(fmt::format("libcudnn.so.{}", CUDNN_MAJOR));
  Cudnn api;
  TIDEPOOL_CUDNN_FUNCTIONS(TIDEPOOL_FIND_FUNCTION)
  return api;
}

Cublas load_cublas() {
  void* library = open_library(fmt::format("libcublas.so.{}", CUBLAS_VER_MAJOR));
  Cublas api;
  TIDEPOOL_CUBLAS_FUNCTIONS(TIDEPOOL_FIND_FUNCTION)
  return api;
}
#undef TIDEPOOL_FIND_FUNCTION

}  // namespace

const Cudnn& cudnn() {
  static const Cudnn api = load_cudnn();
  return api;
}

const Cublas& cublas() {
  static const Cublas api = load_cublas();
  return api;
}

std::string cublas_version() {
  std::array<int, 3> parts{};
  constexpr std::array kParts = {MAJOR_VERSION, MINOR_VERSION, PATCH_LEVEL};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    TIDEPOOL_CUDA_CHECK(cublas().cublasGetProperty(kParts[i], &parts[i]));
  }
  return fmt::format("{}", fmt::join(parts, "."));
}

std::string cudnn_version() {
  const std::size_t v = cudnn().cudnnGetVersion(), runtime = cudnn().cudnnGetCudartVersion();
  return fmt::format("{}.{}.{} for CUDA {}.{}", v / 10000, v / 100 % 100, v % 100, runtime / 1000,
                     runtime % 1000 / 10);
}

std::string missing_libraries() {
  try {
    (void)cublas();  // first: parts of cuDNN need it
    (void)cudnn();
    return {};
  } catch (const DeviceError& error) {
    return error.what();
  }
}

}  // namespace tidepool::cuda
