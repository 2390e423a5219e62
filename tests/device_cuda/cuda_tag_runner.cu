#include "base/random.h"
#include "device/cuda/check.h"
#include "device/cuda/stream.h"
#include "device_cuda/tag_job.h"

namespace tidepool::testing {
namespace {

constexpr int kThreads = 256;

__device__ std::uint64_t* words_of(std::byte* data) {
  return reinterpret_cast<std::uint64_t*>(data);
}

/// As write_tag, for sizes that are multiples of 8.
__device__ void write_words(std::byte* to, Bytes bytes, std::uint64_t tag) {
  for (Bytes i = threadIdx.x; i < bytes / 8; i += kThreads) {
    words_of(to)[i] = tag ^ mix64(static_cast<std::uint64_t>(i));
  }
}

/// One block. Tags of whole values are hashed as TagRunner does; damaged ones to something else.
__global__ void tag_kernel(TagJob job) {
  __shared__ int damaged;
  std::uint64_t hash = job.hash;
  for (std::size_t k = 0; k < job.count; ++k) {
    const TagOperand operand = job.operands[k];
    if (!operand.reads) continue;
    __syncthreads();
    if (threadIdx.x == 0) damaged = 0;
    __syncthreads();
    const std::uint64_t tag = words_of(operand.data)[0] ^ mix64(0);
    for (Bytes i = threadIdx.x; i < operand.bytes / 8; i += kThreads) {
      const std::uint64_t word = words_of(operand.data)[i] ^ mix64(static_cast<std::uint64_t>(i));
      if (word != tag) damaged = 1;
    }
    __syncthreads();
    hash = hash_combine(hash, damaged != 0 ? hash_combine(tag, 1) : tag);
  }
  __syncthreads();
  write_words(job.workspace, job.workspace_bytes, 0xdeadULL);
  for (std::size_t k = 0; k < job.count; ++k) {
    const TagOperand operand = job.operands[k];
    if (operand.writes) write_words(operand.data, operand.bytes, hash_combine(hash, k));
  }
}

}  // namespace

void enqueue_tags(const TagJob& job, NativeStream stream) {
  tag_kernel<<<1, kThreads, 0, cuda::CudaStream::from(stream).stream()>>>(job);
  TIDEPOOL_CUDA_CHECK(cudaGetLastError());
}

}  // namespace tidepool::testing
