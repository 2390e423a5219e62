// GpuState: what a device has of one of its GPUs beside streams. Private to CudaDevice.
#pragma once

#include <cuda_runtime_api.h>

#include <optional>

#include "base/bytes.h"
#include "device/cuda/event_clock.h"
#include "device/cuda/stream.h"

namespace tidepool::cuda {

/// Made, used and destroyed while the GPU is current.
class GpuState {
 public:
  /// Throws DeviceError, as all that follows.
  explicit GpuState(bool one_of_several);
  ~GpuState();
  GpuState(const GpuState&) = delete;
  GpuState& operator=(const GpuState&) = delete;

  /// Zeroes, when the GPU has been synchronised.
  void allocate_arena(Bytes bytes);
  [[nodiscard]] std::byte* arena() const { return arena_; }
  /// Taken since this was made.
  [[nodiscard]] Bytes bytes_above_level() const;
  EventClock& clock() { return clock_; }

  // Of several: for copies of its memory that a stream of another asks for, on a stream of its own.
  [[nodiscard]] cudaStream_t aside() const { return aside_->stream(); }
  [[nodiscard]] cudaEvent_t aside_done() const { return aside_done_; }

 private:
  std::byte* arena_ = nullptr;
  Bytes free_at_start_ = 0;
  EventClock clock_;
  std::optional<CudaStream> aside_;
  cudaEvent_t aside_done_ = nullptr;
};

/// Pinned for all GPUs; null for no bytes. Freed by cudaFreeHost.
std::byte* allocate_host_arena(Bytes bytes);

}  // namespace tidepool::cuda
