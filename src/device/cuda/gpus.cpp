#include "device/cuda/gpus.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>

#include "device/cuda/check.h"
#include "device/cuda/libraries.h"
#include "device/cuda/nvml.h"
#include "device/device.h"

namespace tidepool {
namespace {

/// The oldest GPUs this build has code for (CMAKE_CUDA_ARCHITECTURES in the top CMakeLists.txt).
constexpr int kLeastMajor = 8;

std::string version(int v) { return fmt::format("{}.{}", v / 1000, v % 1000 / 10); }

std::string named(const cudaDeviceProp& gpu) {
  return fmt::format("{}, sm_{}{}", gpu.name, gpu.major, gpu.minor);
}

/// Of the first so many, which are there.
std::string why_not_these(int gpus) {
  cudaDeviceProp first{};
  for (int gpu = 0; gpu < gpus; ++gpu) {
    cudaDeviceProp properties{};
    if (const cudaError_t asked = cudaGetDeviceProperties(&properties, gpu); asked != cudaSuccess) {
      return fmt::format("cuda: {}", cudaGetErrorString(asked));
    }
    if (properties.major < kLeastMajor) {
      return fmt::format("{} is too old: it is sm_{}{}, this build has code for sm_{}0 and later",
                         properties.name, properties.major, properties.minor, kLeastMajor);
    }
    if (gpu == 0) first = properties;
    if (named(properties) != named(first)) {
      return fmt::format(
          "GPUs 0 and {} differ ({}; {}), so that their bits would: choose equal ones by "
          "CUDA_VISIBLE_DEVICES",
          gpu, named(first), named(properties));
    }
  }
  return {};
}

}  // namespace

std::string why_no_cuda(int gpus) {
  int driver = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0) {
    void* library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    const char* reason = library == nullptr ? ::dlerror() : nullptr;
    return fmt::format("no NVIDIA driver{}{}", reason == nullptr ? "" : ": ",
                       reason == nullptr ? "" : reason);
  }
  int devices = 0;
  const cudaError_t error = cudaGetDeviceCount(&devices);
  (void)cudaGetLastError();
  if (error == cudaErrorInsufficientDriver) {
    return fmt::format("the driver is too old: it is for CUDA {}, this build needs {}",
                       version(driver), version(CUDART_VERSION));
  }
  if (error == cudaErrorNoDevice || (error == cudaSuccess && devices == 0)) {
    return fmt::format("the driver (CUDA {}) finds no GPU", version(driver));
  }
  if (error != cudaSuccess) return fmt::format("cuda: {}", cudaGetErrorString(error));
  if (devices < gpus) return fmt::format("{} GPUs asked for, {} found", gpus, devices);
  if (std::string reason = why_not_these(gpus); !reason.empty()) return reason;
  return cuda::missing_libraries();
}

CudaVersions cuda_versions() {
  // From the release notes of the CUDA toolkit: the first driver for each of its major versions.
  constexpr int kMajor = CUDART_VERSION / 1000;
  constexpr int kDriver = kMajor >= 13 ? 580 : kMajor == 12 ? 525 : 450;
  CudaVersions versions;
  versions.needed = fmt::format("driver {} or later (CUDA {}), cuBLAS {}, cuDNN {}", kDriver,
                                kMajor, CUBLAS_VER_MAJOR, CUDNN_MAJOR);
  int driver = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0) {
    versions.found = "no driver";
  } else {
    const std::string name = cuda::nvml_driver_version();
    versions.found =
        fmt::format("driver {}{}for CUDA {}", name, name.empty() ? "" : " ", version(driver));
  }
  const auto add = [&versions](const char* name, std::string (*version_of)()) {
    try {
      versions.found += fmt::format(", {} {}", name, version_of());
    } catch (const DeviceError&) {
      versions.found += fmt::format(", no {}", name);
    }
  };
  add("cuBLAS", cuda::cublas_version);
  add("cuDNN", cuda::cudnn_version);
  return versions;
}

namespace cuda {

CurrentGpu::CurrentGpu(int gpu) {
  if (gpu == kUnchanged) return;
  int current = 0;
  TIDEPOOL_CUDA_CHECK(cudaGetDevice(&current));
  if (current == gpu) return;
  TIDEPOOL_CUDA_CHECK(cudaSetDevice(gpu));
  before_ = current;
}

CurrentGpu::~CurrentGpu() {
  if (before_ != kUnchanged) (void)cudaSetDevice(before_);
}

Bytes free_memory() {
  std::size_t free = 0;
  std::size_t total = 0;
  TIDEPOOL_CUDA_CHECK(cudaMemGetInfo(&free, &total));
  return static_cast<Bytes>(free);
}

Bytes total_memory(int gpu) {
  cudaDeviceProp properties{};
  TIDEPOOL_CUDA_CHECK(cudaGetDeviceProperties(&properties, gpu));
  return static_cast<Bytes>(properties.totalGlobalMem);
}

std::string fingerprint_of(int gpu) {
  int driver = 0;
  TIDEPOOL_CUDA_CHECK(cudaDriverGetVersion(&driver));
  cudaDeviceProp properties{};
  TIDEPOOL_CUDA_CHECK(cudaGetDeviceProperties(&properties, gpu));
  // The libraries obey it whatever they are told: products in TF32 or not.
  const char* tf32 = std::getenv("NVIDIA_TF32_OVERRIDE");
  return fmt::format("cuda; {}; driver for CUDA {}, runtime {}; cuBLAS {}; cuDNN {}{}",
                     named(properties), version(driver), version(CUDART_VERSION), cublas_version(),
                     cudnn_version(),
                     tf32 == nullptr ? "" : fmt::format("; NVIDIA_TF32_OVERRIDE={}", tf32));
}

}  // namespace cuda
}  // namespace tidepool
