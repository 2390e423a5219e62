// Softmax of square matrices and its gradient: one warp a row, sums in double and in one order.
#include "nn/kernels/cuda/grid.cuh"
#include "nn/kernels/cuda/launch.h"
#include "nn/kernels/cuda/row.cuh"

namespace tidepool::nn::device_code {
namespace {

__global__ void attention_softmax_kernel(const float* s, float* p, std::int64_t rows,
                                         std::int64_t tokens, bool causal) {
  for (std::int64_t row = first_row(); row < rows; row += row_step()) {
    const float* from = s + row * tokens;
    float* to = p + row * tokens;
    const std::int64_t seen = causal ? row % tokens + 1 : tokens;
    float largest = from[0];
    for (std::int64_t j = row_lane(); j < seen; j += 32) largest = fmaxf(largest, from[j]);
    largest = row_max(largest);
    double sum = 0;
    for (std::int64_t j = row_lane(); j < seen; j += 32) sum += expf(from[j] - largest);
    const auto inverse = static_cast<float>(1 / row_sum(sum));
    for (std::int64_t j = row_lane(); j < tokens; j += 32) {
      to[j] = j < seen ? expf(from[j] - largest) * inverse : 0.0F;
    }
  }
}

__global__ void attention_softmax_backward_kernel(const float* p, const float* dp, float* ds,
                                                  std::int64_t rows, std::int64_t tokens) {
  for (std::int64_t row = first_row(); row < rows; row += row_step()) {
    const std::int64_t first = row * tokens;
    double sum = 0;
    for (std::int64_t j = row_lane(); j < tokens; j += 32) {
      sum += static_cast<double>(p[first + j]) * dp[first + j];
    }
    const auto mean = static_cast<float>(row_sum(sum));
    for (std::int64_t j = row_lane(); j < tokens; j += 32) {
      ds[first + j] = p[first + j] * (dp[first + j] - mean);
    }
  }
}

}  // namespace

void attention_softmax(const float* s, float* p, std::int64_t rows, std::int64_t tokens,
                       bool causal, cudaStream_t stream) {
  attention_softmax_kernel<<<blocks_for(rows * 32), kThreads, 0, stream>>>(s, p, rows, tokens,
                                                                           causal);
  TIDEPOOL_CUDA_CHECK(cudaGetLastError());
}

void attention_softmax_backward(const float* p, const float* dp, float* ds, std::int64_t rows,
                                std::int64_t tokens, cudaStream_t stream) {
  attention_softmax_backward_kernel<<<blocks_for(rows * 32), kThreads, 0, stream>>>(p, dp, ds, rows,
                                                                                    tokens);
  TIDEPOOL_CUDA_CHECK(cudaGetLastError());
}

void load_attention() {
  cudaFuncAttributes attributes{};
  TIDEPOOL_CUDA_CHECK(cudaFuncGetAttributes(&attributes, attention_softmax_kernel));
}

}  // namespace tidepool::nn::device_code
