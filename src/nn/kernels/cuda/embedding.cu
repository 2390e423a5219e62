// Embeddings. Each sum of a gradient belongs to one thread, which adds in the order of the batch.
#include "nn/kernels/cuda/grid.cuh"
#include "nn/kernels/cuda/launch.h"

namespace tidepool::nn::device_code {
namespace {

/// A block a token. What is no row of the table has zeros.
__global__ void embedding_kernel(Embedding e, const std::int32_t* tokens, const float* table,
                                 const float* positions, float* y) {
  for (std::int64_t i = blockIdx.x; i < e.samples * e.sequence; i += gridDim.x) {
    const std::int64_t token = tokens[i];
    const bool known = token >= 0 && token < e.vocabulary;
    for (std::int64_t c = threadIdx.x; c < e.width; c += blockDim.x) {
      const float word = known ? table[token * e.width + c] : 0.0F;
      y[i * e.width + c] = word + positions[i % e.sequence * e.width + c];
    }
  }
}

/// Block (i, k): columns k*kThreads... of the row of token i, where no equal one is before it.
__global__ void embedding_table_kernel(Embedding e, const std::int32_t* tokens, const float* dy,
                                       float* dtable) {
  __shared__ int chunk[kThreads];
  __shared__ int is_later;
  const std::int64_t count = e.samples * e.sequence, first = blockIdx.x;
  const int token = tokens[first];
  if (threadIdx.x == 0) is_later = 0;
  __syncthreads();
  for (std::int64_t i = threadIdx.x; i < first; i += kThreads) {
    if (tokens[i] == token) is_later = 1;  // whoever says so says the same
  }
  __syncthreads();
  if (is_later != 0 || token < 0 || token >= e.vocabulary) return;
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.y) * kThreads + threadIdx.x;
  double sum = 0;
  for (std::int64_t begin = first; begin < count; begin += kThreads) {
    const std::int64_t own = begin + threadIdx.x;
    chunk[threadIdx.x] = own < count ? tokens[own] : -1;
    __syncthreads();
    for (int k = 0; column < e.width && k < kThreads; ++k) {
      if (chunk[k] == token) sum += dy[(begin + k) * e.width + column];
    }
    __syncthreads();
  }
  if (column < e.width) dtable[token * e.width + column] = static_cast<float>(sum);
}

__global__ void embedding_positions_kernel(Embedding e, const float* dy, float* dpositions) {
  const std::int64_t used = e.sequence * e.width;
  for (std::int64_t i = first_index(); i < e.positions * e.width; i += index_step()) {
    double sum = 0;
    for (std::int64_t n = 0; i < used && n < e.samples; ++n) sum += dy[n * used + i];
    dpositions[i] = static_cast<float>(sum);
  }
}

}  // namespace

void embedding_forward(const Embedding& e, const std::int32_t* tokens, const float* table,
                       const float* positions, float* y, cudaStream_t stream) {
  embedding_kernel<<<blocks_for(e.samples * e.sequence * kThreads), kThreads, 0, stream>>>(
      e, tokens, table, positions, y);
  TIDEPOOL_CUDA_CHECK(cudaGetLastError());
}

void embedding_backward(const Embedding& e, const std::int32_t* tokens, const float* dy,
                        float* dtable, float* dpositions, cudaStream_t stream) {
  const auto bytes = static_cast<std::size_t>(e.vocabulary * e.width) * sizeof(float);
  TIDEPOOL_CUDA_CHECK(cudaMemsetAsync(dtable, 0, bytes, stream));
  const dim3 grid(static_cast<unsigned>(e.samples * e.sequence),
                  static_cast<unsigned>((e.width + kThreads - 1) / kThreads), 1);
  embedding_table_kernel<<<grid, kThreads, 0, stream>>>(e, tokens, dy, dtable);
  TIDEPOOL_CUDA_CHECK(cudaGetLastError());
  embedding_positions_kernel<<<blocks_for(e.positions * e.width), kThreads, 0, stream>>>(
      e, dy, dpositions);
  TIDEPOOL_CUDA_CHECK(cudaGetLastError());
}

void load_embedding() {
  cudaFuncAttributes attributes{};
  TIDEPOOL_CUDA_CHECK(cudaFuncGetAttributes(&attributes, embedding_kernel));
}

}  // namespace tidepool::nn::device_code
