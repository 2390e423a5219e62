#include "device/cuda/gpu_state.h"

#include <fmt/format.h>

#include "device/cuda/check.h"
#include "device/cuda/gpus.h"
#include "device/device.h"

namespace tidepool::cuda {

GpuState::GpuState(bool one_of_several) {
  if (one_of_several) {
    aside_.emplace(CudaStream::Handles::none);
    TIDEPOOL_CUDA_CHECK(cudaEventCreateWithFlags(&aside_done_, cudaEventDisableTiming));
  }
  clock_.open();
  free_at_start_ = free_memory();
}

GpuState::~GpuState() {
  if (aside_done_ != nullptr) (void)cudaEventDestroy(aside_done_);
  if (arena_ != nullptr) (void)cudaFree(arena_);
}

void GpuState::allocate_arena(Bytes bytes) {
  if (bytes == 0) return;
  void* memory = nullptr;
  const auto size = static_cast<std::size_t>(bytes);
  if (const cudaError_t error = cudaMalloc(&memory, size); error != cudaSuccess) {
    (void)cudaGetLastError();
    throw DeviceError(fmt::format("cannot allocate the device arena of {}: {} ({} are free)",
                                  format_bytes(bytes), cudaGetErrorString(error),
                                  format_bytes(free_at_start_)));
  }
  arena_ = static_cast<std::byte*>(memory);
  TIDEPOOL_CUDA_CHECK(cudaMemset(memory, 0, size));
}

Bytes GpuState::bytes_above_level() const { return free_at_start_ - free_memory(); }

std::byte* allocate_host_arena(Bytes bytes) {
  if (bytes == 0) return nullptr;
  void* memory = nullptr;
  const cudaError_t error =
      cudaHostAlloc(&memory, static_cast<std::size_t>(bytes), cudaHostAllocPortable);
  if (error != cudaSuccess) {
    (void)cudaGetLastError();
    throw DeviceError(fmt::format("cannot allocate the pinned host arena of {}: {}",
                                  format_bytes(bytes), cudaGetErrorString(error)));
  }
  return static_cast<std::byte*>(memory);  // pinning has touched every page
}

}  // namespace tidepool::cuda
