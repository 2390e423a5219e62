// Sums: batch norm, columns, losses. Every sum is cut into parts by the shape alone and the parts
// are added in one order, so that it repeats its bits on any stream and beside anything. Sums are
// kept in double, like the reference's.
#include <cmath>

#include "nn/kernels/cuda/grid.cuh"
#include "nn/kernels/cuda/launch.h"

namespace tidepool::nn::device_code {
namespace {

constexpr unsigned kAllLanes = 0xffffffffU;

/// Two sums at once. No initialisers: it also lies in shared memory.
struct Pair {
  double a, b;
};

__device__ double warp_sum(double value) {
  for (int offset = 16; offset > 0; offset /= 2) {
    value += __shfl_down_sync(kAllLanes, value, offset);
  }
  return value;
}

/// The sums over a block of kThreads threads, in its first thread.
__device__ Pair block_sum(Pair pair) {
  __shared__ Pair parts[kThreads / 32];
  pair.a = warp_sum(pair.a);
  pair.b = warp_sum(pair.b);
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = pair;
  __syncthreads();
  Pair total{};
  if (threadIdx.x == 0) {
    for (const Pair& part : parts) {
      total.a += part.a;
      total.b += part.b;
    }
  }
  return total;
}

/// Calls f(offset) for the elements of channel blockIdx.x that are this thread's, of the part
/// blockIdx.y of gridDim.y.
template <class F>
__device__ void for_each_of_channel(const Planes& shape, F f) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.y) * kThreads;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.y) * kThreads + threadIdx.x;
  const std::int64_t images_step = step / shape.plane, plane_step = step % shape.plane;
  std::int64_t image = first / shape.plane, place = first % shape.plane;
  while (image < shape.images) {
    f((image * shape.channels + blockIdx.x) * shape.plane + place);
    image += images_step;
    place += plane_step;
    if (place >= shape.plane) {
      place -= shape.plane;
      ++image;
    }
  }
}

/// The parts of one channel, added up.
__device__ Pair total_of(const Pair* parts, unsigned count) {
  Pair total{};
  for (unsigned i = 0; i < count; ++i) {
    total.a += parts[i].a;
    total.b += parts[i].b;
  }
  return total;
}

__global__ void moments_kernel(Planes shape, const float* x, Pair* parts) {
  Pair sum{};
  for_each_of_channel(shape, [&](std::int64_t i) {
    const double value = x[i];
    sum.a += value;
    sum.b += value * value;
  });
  const Pair total = block_sum(sum);
  if (threadIdx.x == 0) parts[blockIdx.x * gridDim.y + blockIdx.y] = total;
}

__global__ void channel_sums_kernel(Planes shape, const float* x, float* sums) {
  Pair sum{};
  for_each_of_channel(shape, [&](std::int64_t i) { sum.a += x[i]; });
  const Pair total = block_sum(sum);
  if (threadIdx.x == 0) sums[blockIdx.x] = static_cast<float>(total.a);
}

__global__ void normalise_kernel(Planes shape, float epsilon, const float* x, const float* scale,
                                 const float* shift, float* y, float* mean, float* variance,
                                 const Pair* parts) {
  __shared__ double shared_mean, shared_factor;
  const unsigned c = blockIdx.x;
  if (threadIdx.x == 0) {
    const Pair total = total_of(parts + c * gridDim.y, gridDim.y);
    const double count = static_cast<double>(shape.images * shape.plane);
    const double m = total.a / count;
    const double v = fmax(total.b / count - m * m, 0.0);
    shared_mean = m;
    shared_factor = scale[c] / sqrt(v + epsilon);
    if (blockIdx.y == 0) {
      mean[c] = static_cast<float>(m);
      variance[c] = static_cast<float>(v);
    }
  }
  __syncthreads();
  const double m = shared_mean, factor = shared_factor, add = shift[c];
  for_each_of_channel(
      shape, [&](std::int64_t i) { y[i] = static_cast<float>((x[i] - m) * factor + add); });
}

__global__ void gradient_sums_kernel(Planes shape, float epsilon, const float* x, const float* dy,
                                     const float* mean, const float* variance, Pair* parts) {
  const double m = mean[blockIdx.x];
  const double inverse = 1 / sqrt(static_cast<double>(variance[blockIdx.x]) + epsilon);
  Pair sum{};
  for_each_of_channel(shape, [&](std::int64_t i) {
    const double d = dy[i];
    sum.a += d;
    sum.b += d * ((x[i] - m) * inverse);
  });
  const Pair total = block_sum(sum);
  if (threadIdx.x == 0) parts[blockIdx.x * gridDim.y + blockIdx.y] = total;
}

__global__ void gradient_kernel(Planes shape, float epsilon, const float* x, const float* dy,
                                const float* mean, const float* variance, const float* scale,
                                float* dx, float* dscale, float* dshift, const Pair* parts) {
  __shared__ Pair shared;
  const unsigned c = blockIdx.x;
  if (threadIdx.x == 0) {
    shared = total_of(parts + c * gridDim.y, gridDim.y);
    if (blockIdx.y == 0) {
      dshift[c] = static_cast<float>(shared.a);
      dscale[c] = static_cast<float>(shared.b);
    }
  }
  __syncthreads();
  const double count = static_cast<double>(shape.images * shape.plane);
  const double m = mean[c];
  const double inverse = 1 / sqrt(static_cast<double>(variance[c]) + epsilon);
  const double sum = shared.a / count, product = shared.b / count, factor = scale[c] * inverse;
  for_each_of_channel(shape, [&](std::int64_t i) {
    const double centred = dy[i] - sum - (x[i] - m) * inverse * product;
    dx[i] = static_cast<float>(factor * centred);
  });
}

/// 32 columns a block, 8 rows at a time.
__global__ void sum_rows_kernel(const float* x, float* sums, std::int64_t rows,
                                std::int64_t columns) {
  __shared__ double parts[kThreads / 32][32];
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * 32 + threadIdx.x;
  double sum = 0;
  if (column < columns) {
    for (std::int64_t row = threadIdx.y; row < rows; row += blockDim.y) {
      sum += x[row * columns + column];
    }
  }
  parts[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || column >= columns) return;
  for (unsigned i = 1; i < blockDim.y; ++i) sum += parts[i][threadIdx.x];
  sums[column] = static_cast<float>(sum);
}

__device__ int lane() { return static_cast<int>(threadIdx.x % 32); }

/// First sample of this warp when warps take samples in turn, and the step.
__device__ std::int64_t first_sample() { return first_index() / 32; }
__device__ std::int64_t sample_step() { return index_step() / 32; }

/// One warp a sample. A label that is no class has no loss that is a number: the host refuses it,
/// but what was enqueued before it could still runs, on whatever lies there.
__global__ void sample_losses_kernel(const float* logits, const std::int32_t* labels,
                                     std::int64_t samples, std::int64_t classes, double* parts) {
  for (std::int64_t n = first_sample(); n < samples; n += sample_step()) {
    const float* row = logits + n * classes;
    float largest = row[0];
    for (std::int64_t k = lane(); k < classes; k += 32) largest = fmaxf(largest, row[k]);
    for (int offset = 16; offset > 0; offset /= 2) {
      largest = fmaxf(largest, __shfl_xor_sync(kAllLanes, largest, offset));
    }
    double sum = 0;
    for (std::int64_t k = lane(); k < classes; k += 32) {
      sum += exp(static_cast<double>(row[k]) - largest);
    }
    sum = warp_sum(sum);
    if (lane() == 0) {
      const std::int32_t label = labels[n];
      if (label < 0) {
        parts[n] = 0;
      } else if (label >= classes) {
        parts[n] = static_cast<double>(NAN);
      } else {
        parts[n] = log(sum) - (static_cast<double>(row[label]) - largest);
      }
    }
  }
}

/// One block.
__global__ void total_loss_kernel(const double* parts, std::int64_t samples, double full_batch,
                                  float* loss) {
  Pair sum{};
  for (std::int64_t n = threadIdx.x; n < samples; n += kThreads) sum.a += parts[n];
  const Pair total = block_sum(sum);
  if (threadIdx.x == 0) *loss = static_cast<float>(total.a / full_batch);
}

/// One warp a sample. Sums of integers have no order. No comparison with a NaN is a success.
__global__ void count_correct_kernel(const float* logits, const std::int32_t* labels,
                                     std::int64_t samples, std::int64_t classes,
                                     std::int32_t* count) {
  for (std::int64_t n = first_sample(); n < samples; n += sample_step()) {
    const float* row = logits + n * classes;
    const std::int64_t label = labels[n];
    bool correct = label >= 0 && label < classes;
    if (correct) {
      const float chosen = row[label];
      for (std::int64_t k = lane(); k < classes; k += 32) {
        if (k < label) correct = correct && chosen > row[k];
        if (k > label) correct = correct && chosen >= row[k];
      }
    }
    correct = __all_sync(kAllLanes, correct) != 0;
    if (correct && lane() == 0) atomicAdd(count, 1);
  }
}

/// One thread a pixel, a channel a class; each block writes its part of the sum. Labels that are no
/// classes: see sample_losses_kernel.
__global__ void pixel_losses_kernel(Planes shape, const float* logits, const std::int32_t* labels,
                                    double* parts) {
  Pair sum{};
  for (std::int64_t i = first_index(); i < shape.images * shape.plane; i += index_step()) {
    const std::int64_t label = labels[i];
    if (label < 0) continue;
    if (label >= shape.channels) {
      sum.a = static_cast<double>(NAN);
      continue;
    }
    const float* own = logits + i / shape.plane * shape.channels * shape.plane + i % shape.plane;
    float largest = own[0];
    for (std::int64_t k = 1; k < shape.channels; ++k) {
      largest = fmaxf(largest, own[k * shape.plane]);
    }
    double exponentials = 0;
    for (std::int64_t k = 0; k < shape.channels; ++k) {
      exponentials += exp(static_cast<double>(own[k * shape.plane]) - largest);
    }
    sum.a += log(exponentials) - (static_cast<double>(own[label * shape.plane]) - largest);
  }
  const Pair total = block_sum(sum);
  if (threadIdx.x == 0) parts[blockIdx.x] = total.a;
}

/// One thread a pixel. As count_correct_kernel.
__global__ void count_correct_pixels_kernel(Planes shape, const float* logits,
                                            const std::int32_t* labels, std::int32_t* count) {
  Pair sum{};
  for (std::int64_t i = first_index(); i < shape.images * shape.plane; i += index_step()) {
    const std::int64_t label = labels[i];
    bool correct = label >= 0 && label < shape.channels;
    const float* own = logits + i / shape.plane * shape.channels * shape.plane + i % shape.plane;
    const float chosen = correct ? own[label * shape.plane] : 0.0F;
    for (std::int64_t k = 0; correct && k < shape.channels; ++k) {
      if (k < label) correct = chosen > own[k * shape.plane];
      if (k > label) correct = chosen >= own[k * shape.plane];
    }
    if (correct) sum.a += 1;
  }
  const Pair total = block_sum(sum);
  if (threadIdx.x == 0) atomicAdd(count, static_cast<int>(total.a));
}

/// How many parts a channel's sum is cut into: about 1024 blocks in all, which fills an H200, each
/// with some rounds of work.
unsigned parts_of(const Planes& shape) {
  constexpr std::int64_t kBlocks = 1024, kRounds = 4;
  const std::int64_t wanted = (kBlocks + shape.channels - 1) / shape.channels;
  const std::int64_t useful =
      (shape.images * shape.plane + kThreads * kRounds - 1) / (kThreads * kRounds);
  return static_cast<unsigned>(std::max<std::int64_t>(1, std::min(wanted, useful)));
}

dim3 grid_of(const Planes& shape) {
  return {static_cast<unsigned>(shape.channels), parts_of(shape), 1};
}

}  // namespace

std::int64_t batch_norm_workspace(const Planes& shape) {
  return shape.channels * parts_of(shape) * static_cast<std::int64_t>(sizeof(Pair));
}

void batch_norm_forward(const Planes& shape, float epsilon, const float* x, const float* scale,
                        const float* shift, float* y, float* mean, float* variance, void* workspace,
                        cudaStream_t stream) {
  auto* parts = static_cast<Pair*>(workspace);
  moments_kernel<<<grid_of(shape), kThreads, 0, stream>>>(shape, x, parts);
  TIDEPOOL_CUDA_CHECK(cudaGetLastError());
  normalise_kernel<<<grid_of(shape), kThreads, 0, stream>>>(shape, epsilon, x, scale, shift, y,
                                                            mean, variance, parts);
  TIDEPOOL_CUDA_CHECK(cudaGetLastError());
}

void batch_norm_backward(const Planes& shape, float epsilon, const float* x, const float* dy,
                         const float* mean, const float* variance, const float* scale, float* dx,
                         float* dscale, float* dshift, void* workspace, cudaStream_t stream) {
  auto* parts = static_cast<Pair*>(workspace);
  gradient_sums_kernel<<<grid_of(shape), kThreads, 0, stream>>>(shape, epsilon, x, dy, mean,
                                                                variance, parts);
  TIDEPOOL_CUDA_CHECK(cudaGetLastError());
  gradient_kernel<<<grid_of(shape), kThreads, 0, stream>>>(shape, epsilon, x, dy, mean, variance,
                                                           scale, dx, dscale, dshift, parts);
  TIDEPOOL_CUDA_CHECK(cudaGetLastError());
}

void sum_rows(const float* x, float* sums, std::int64_t rows, std::int64_t columns,
              cudaStream_t stream) {
  const dim3 threads(32, kThreads / 32);
  const auto blocks = static_cast<unsigned>((columns + 31) / 32);
  sum_rows_kernel<<<blocks, threads, 0, stream>>>(x, sums, rows, columns);
  TIDEPOOL_CUDA_CHECK(cudaGetLastError());
}

void sum_channels(const Planes& shape, const float* x, float* sums, cudaStream_t stream) {
  const auto channels = static_cast<unsigned>(shape.channels);
  channel_sums_kernel<<<channels, kThreads, 0, stream>>>(shape, x, sums);
  TIDEPOOL_CUDA_CHECK(cudaGetLastError());
}

void cross_entropy(const float* logits, const std::int32_t* labels, std::int64_t samples,
                   std::int64_t classes, double full_batch, double* parts, float* loss,
                   cudaStream_t stream) {
  sample_losses_kernel<<<blocks_for(samples * 32), kThreads, 0, stream>>>(logits, labels, samples,
                                                                          classes, parts);
  TIDEPOOL_CUDA_CHECK(cudaGetLastError());
  total_loss_kernel<<<1, kThreads, 0, stream>>>(parts, samples, full_batch, loss);
  TIDEPOOL_CUDA_CHECK(cudaGetLastError());
}

std::int64_t pixel_cross_entropy_parts(const Planes& shape) {
  return blocks_for(shape.images * shape.plane);
}

void pixel_cross_entropy(const Planes& shape, const float* logits, const std::int32_t* labels,
                         double full_batch, double* parts, float* loss, cudaStream_t stream) {
  const std::int64_t count = pixel_cross_entropy_parts(shape);
  const auto blocks = static_cast<unsigned>(count);
  pixel_losses_kernel<<<blocks, kThreads, 0, stream>>>(shape, logits, labels, parts);
  TIDEPOOL_CUDA_CHECK(cudaGetLastError());
  total_loss_kernel<<<1, kThreads, 0, stream>>>(parts, count, full_batch, loss);
  TIDEPOOL_CUDA_CHECK(cudaGetLastError());
}

void count_correct_pixels(const Planes& shape, const float* logits, const std::int32_t* labels,
                          std::int32_t* count, cudaStream_t stream) {
  const unsigned blocks = blocks_for(shape.images * shape.plane);
  count_correct_pixels_kernel<<<blocks, kThreads, 0, stream>>>(shape, logits, labels, count);
  TIDEPOOL_CUDA_CHECK(cudaGetLastError());
}

void count_correct(const float* logits, const std::int32_t* labels, std::int64_t samples,
                   std::int64_t classes, std::int32_t* count, cudaStream_t stream) {
  count_correct_kernel<<<blocks_for(samples * 32), kThreads, 0, stream>>>(logits, labels, samples,
                                                                          classes, count);
  TIDEPOOL_CUDA_CHECK(cudaGetLastError());
}

void load_reductions() {
  cudaFuncAttributes attributes{};
  TIDEPOOL_CUDA_CHECK(cudaFuncGetAttributes(&attributes, sum_rows_kernel));
}

}  // namespace tidepool::nn::device_code
