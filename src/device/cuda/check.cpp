#include "device/cuda/check.h"

#include <fmt/format.h>

#include <string_view>

#include "device/cuda/libraries.h"
#include "device/device.h"

namespace tidepool::cuda {
namespace {

/// The part of a path from src/, tests/ or cli/ on.
std::string_view short_path(std::string_view file) {
  for (const std::string_view folder : {"/src/", "/tests/", "/cli/", "/bench/"}) {
    if (const auto at = file.rfind(folder); at != std::string_view::npos)
      return file.substr(at + 1);
  }
  return file;
}

[[noreturn]] void fail(std::string_view library, std::string_view reason, const CallSite& site) {
  throw DeviceError(fmt::format("{}: {} ({}:{}): {}", library, site.call, short_path(site.file),
                                site.line, reason));
}

}  // namespace

void fail(cudaError_t error, const CallSite& site) {
  (void)cudaGetLastError();  // an error that is not sticky must not be found again by a later call
  fail("cuda", fmt::format("{} ({})", cudaGetErrorString(error), cudaGetErrorName(error)), site);
}

void fail(cudnnStatus_t status, const CallSite& site) {
  constexpr std::size_t kMost = 512;
  char details[kMost] = {};
  cudnn().cudnnGetLastErrorString(details, kMost);
  const char* separator = details[0] == '\0' ? "" : ": ";
  fail("cudnn", fmt::format("{}{}{}", cudnn().cudnnGetErrorString(status), separator, details),
       site);
}

void fail(cublasStatus_t status, const CallSite& site) {
  fail("cublas", cublas().cublasGetStatusString(status), site);
}

}  // namespace tidepool::cuda
