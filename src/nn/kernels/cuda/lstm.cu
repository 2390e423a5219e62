// The cells of an LSTM, one step of all samples at a time; its products are cuBLAS'.
#include "nn/kernels/cuda/grid.cuh"
#include "nn/kernels/cuda/launch.h"

namespace tidepool::nn::device_code {
namespace {

constexpr unsigned kPlacesAtATime = kThreads / 32;

__device__ float lstm_sigmoid(float x) { return 1 / (1 + expf(-x)); }

__global__ void lstm_cells_kernel(Lstm l, std::int64_t step, const float* bias, float* reserve,
                                  float* y) {
  for (std::int64_t e = first_index(); e < l.samples * l.hidden; e += index_step()) {
    const std::int64_t j = e % l.hidden, place = e / l.hidden * l.steps + step;
    float* at = reserve + place * 5 * l.hidden + j;
    const float i = lstm_sigmoid(at[0] + bias[j]);
    const float f = lstm_sigmoid(at[l.hidden] + bias[l.hidden + j]);
    const float g = tanhf(at[2 * l.hidden] + bias[2 * l.hidden + j]);
    const float o = lstm_sigmoid(at[3 * l.hidden] + bias[3 * l.hidden + j]);
    const float c = (step > 0 ? f * at[-l.hidden] : 0.0F) + i * g;
    at[0] = i;
    at[l.hidden] = f;
    at[2 * l.hidden] = g;
    at[3 * l.hidden] = o;
    at[4 * l.hidden] = c;
    y[place * l.hidden + j] = o * tanhf(c);
  }
}

/// dgates may be the reserve: each cell reads its own gates before it writes, and the last fifth of
/// the place before, which nobody writes.
__global__ void lstm_cells_backward_kernel(Lstm l, std::int64_t step, const float* dy,
                                           const float* dh, const float* reserve, float* dgates,
                                           float* dc) {
  const bool last = step + 1 == l.steps;
  for (std::int64_t e = first_index(); e < l.samples * l.hidden; e += index_step()) {
    const std::int64_t j = e % l.hidden, place = e / l.hidden * l.steps + step;
    const float* at = reserve + place * 5 * l.hidden + j;
    float* to = dgates + place * l.pitch + j;
    const float i = at[0], f = at[l.hidden], g = at[2 * l.hidden], o = at[3 * l.hidden];
    const float squashed = tanhf(at[4 * l.hidden]);
    const float before = step > 0 ? at[-l.hidden] : 0.0F;
    const float d = dy[place * l.hidden + j] + (last ? 0.0F : dh[e]);
    const float all = (last ? 0.0F : dc[e]) + d * o * (1 - squashed * squashed);
    to[0] = all * g * i * (1 - i);
    to[l.hidden] = all * before * f * (1 - f);
    to[2 * l.hidden] = all * i * (1 - g * g);
    to[3 * l.hidden] = d * squashed * o * (1 - o);
    dc[e] = all * f;
  }
}

__global__ void lstm_previous_kernel(Lstm l, const float* y, float* previous) {
  for (std::int64_t e = first_index(); e < l.samples * l.steps * l.hidden; e += index_step()) {
    previous[e] = e / l.hidden % l.steps == 0 ? 0.0F : y[e - l.hidden];
  }
}

/// 32 gates a block, kPlacesAtATime places at a time.
__global__ void lstm_sum_gates_kernel(Lstm l, const float* dgates, float* dbias) {
  __shared__ double sums[kPlacesAtATime][32];
  const std::int64_t gate = static_cast<std::int64_t>(blockIdx.x) * 32 + threadIdx.x;
  double sum = 0;
  if (gate < 4 * l.hidden) {
    for (std::int64_t place = threadIdx.y; place < l.samples * l.steps; place += kPlacesAtATime) {
      sum += dgates[place * l.pitch + gate];
    }
  }
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || gate >= 4 * l.hidden) return;
  for (unsigned i = 1; i < kPlacesAtATime; ++i) sum += sums[i][threadIdx.x];
  dbias[gate] = static_cast<float>(sum);
}

}  // namespace

void lstm_cells(const Lstm& l, std::int64_t step, const float* bias, float* reserve, float* y,
                cudaStream_t stream) {
  lstm_cells_kernel<<<blocks_for(l.samples * l.hidden), kThreads, 0, stream>>>(l, step, bias,
                                                                               reserve, y);
  TIDEPOOL_CUDA_CHECK(cudaGetLastError());
}

void lstm_cells_backward(const Lstm& l, std::int64_t step, const float* dy, const float* dh,
                         const float* reserve, float* dgates, float* dc, cudaStream_t stream) {
  lstm_cells_backward_kernel<<<blocks_for(l.samples * l.hidden), kThreads, 0, stream>>>(
      l, step, dy, dh, reserve, dgates, dc);
  TIDEPOOL_CUDA_CHECK(cudaGetLastError());
}

void lstm_previous(const Lstm& l, const float* y, float* previous, cudaStream_t stream) {
  lstm_previous_kernel<<<blocks_for(l.samples * l.steps * l.hidden), kThreads, 0, stream>>>(
      l, y, previous);
  TIDEPOOL_CUDA_CHECK(cudaGetLastError());
}

void lstm_sum_gates(const Lstm& l, const float* dgates, float* dbias, cudaStream_t stream) {
  const dim3 threads(32, kPlacesAtATime);
  const auto blocks = static_cast<unsigned>((4 * l.hidden + 31) / 32);
  lstm_sum_gates_kernel<<<blocks, threads, 0, stream>>>(l, dgates, dbias);
  TIDEPOOL_CUDA_CHECK(cudaGetLastError());
}

void load_lstm() {
  cudaFuncAttributes attributes{};
  TIDEPOOL_CUDA_CHECK(cudaFuncGetAttributes(&attributes, lstm_cells_kernel));
}

}  // namespace tidepool::nn::device_code
