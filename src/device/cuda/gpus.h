// The GPUs of this machine: which can be used, which one calls are for.
#pragma once

#include <string>

#include "base/bytes.h"

namespace tidepool {

/// Why the first `gpus` that CUDA numbers cannot be used here, in words (no driver, too few, a
/// driver or a GPU too old, GPUs that differ: their bits would, a library missing); empty when they
/// can.
std::string why_no_cuda(int gpus = 1);

/// Of the driver and the libraries, in words.
struct CudaVersions {
  std::string needed;
  std::string found;
};
/// Says of each whether it is there; throws nothing.
CudaVersions cuda_versions();

namespace cuda {

/// A GPU is the calling thread's current one while this lives, and the one before it afterwards.
/// Whoever makes or uses streams, events, handles or memory of a GPU does it inside one: outside,
/// the current one is that of single devices.
class CurrentGpu {
 public:
  static constexpr int kUnchanged = -1;
  /// `kUnchanged`: leaves it as it is. Throws DeviceError.
  explicit CurrentGpu(int gpu);
  ~CurrentGpu();
  CurrentGpu(const CurrentGpu&) = delete;
  CurrentGpu& operator=(const CurrentGpu&) = delete;

 private:
  int before_ = kUnchanged;
};

/// Free memory of the current GPU, all processes counted.
Bytes free_memory();
/// All memory of a GPU.
Bytes total_memory(int gpu);
/// A GPU, driver and libraries: what bits depend on.
std::string fingerprint_of(int gpu);

}  // namespace cuda
}  // namespace tidepool
