// Element-wise ops: four elements at a time, which is one 16-byte access an array.
#include "nn/kernels/cuda/grid.cuh"
#include "nn/kernels/cuda/launch.h"
#include "nn/ops/adamw.h"
#include "nn/ops/dropout.h"

namespace tidepool::nn::device_code {
namespace {

/// y[i] = f(x[i]...). `Inputs` are float arrays.
template <class F, class... Inputs>
__global__ void map_kernel(F f, float* y, std::int64_t count, Inputs... x) {
  const std::int64_t quads = count / 4;
  for (std::int64_t i = first_index(); i < quads; i += index_step()) {
    const auto apply = [&f](auto... v) {
      return float4{f(v.x...), f(v.y...), f(v.z...), f(v.w...)};
    };
    reinterpret_cast<float4*>(y)[i] = apply(reinterpret_cast<const float4*>(x)[i]...);
  }
  for (std::int64_t i = 4 * quads + first_index(); i < count; i += index_step()) y[i] = f(x[i]...);
}

template <class F, class... Inputs>
void map(F f, float* y, std::int64_t count, cudaStream_t stream, Inputs... x) {
  map_kernel<<<blocks_for(count / 4 + 3), kThreads, 0, stream>>>(f, y, count, x...);
  TIDEPOOL_CUDA_CHECK(cudaGetLastError());
}

struct Positive {
  __device__ float operator()(float x) const { return x > 0 ? x : 0.0F; }
};
struct WherePositive {
  __device__ float operator()(float y, float dy) const { return y > 0 ? dy : 0.0F; }
};
struct Gelu {
  __device__ float operator()(float x) const { return x * normcdff(x); }
};
struct GeluGradient {
  __device__ float operator()(float x, float dy) const {
    constexpr float kInverseRootTwoPi = 0.3989422804F;
    return dy * (normcdff(x) + x * kInverseRootTwoPi * expf(-0.5F * x * x));
  }
};
struct Sum {
  float factor;
  __device__ float operator()(float a, float b) const { return a + factor * b; }
};
struct Times {
  float factor;
  __device__ float operator()(float x) const { return factor * x; }
};
struct InverseDeviation {
  float epsilon;
  __device__ float operator()(float variance) const {
    return static_cast<float>(1 / sqrt(static_cast<double>(variance) + epsilon));
  }
};

__global__ void dropout_kernel(Dropout d, const ControlBlock* control, const float* x, float* y,
                               std::uint8_t* mask, std::int64_t count) {
  const std::uint64_t key = dropout_key(control->seed, d.random_key, control->iteration);
  const auto keeps = [&](std::int64_t i) {
    return dropout_bits(key, static_cast<std::uint32_t>(d.first_element + i)) >= d.threshold;
  };
  const std::int64_t quads = count / 4;
  for (std::int64_t i = first_index(); i < quads; i += index_step()) {
    const float4 v = reinterpret_cast<const float4*>(x)[i];
    const bool k0 = keeps(4 * i), k1 = keeps(4 * i + 1), k2 = keeps(4 * i + 2),
               k3 = keeps(4 * i + 3);
    reinterpret_cast<float4*>(y)[i] = {k0 ? v.x * d.scale : 0.0F, k1 ? v.y * d.scale : 0.0F,
                                       k2 ? v.z * d.scale : 0.0F, k3 ? v.w * d.scale : 0.0F};
    if (mask != nullptr) {
      reinterpret_cast<uchar4*>(mask)[i] = {k0, k1, k2, k3};
    }
  }
  for (std::int64_t i = 4 * quads + first_index(); i < count; i += index_step()) {
    const bool kept = keeps(i);
    y[i] = kept ? x[i] * d.scale : 0.0F;
    if (mask != nullptr) mask[i] = kept;
  }
}

__global__ void dropout_backward_kernel(float scale, const std::uint8_t* mask, const float* dy,
                                        float* dx, std::int64_t count) {
  const std::int64_t quads = count / 4;
  for (std::int64_t i = first_index(); i < quads; i += index_step()) {
    const float4 v = reinterpret_cast<const float4*>(dy)[i];
    const uchar4 m = reinterpret_cast<const uchar4*>(mask)[i];
    reinterpret_cast<float4*>(dx)[i] = {
        m.x != 0 ? v.x * scale : 0.0F, m.y != 0 ? v.y * scale : 0.0F, m.z != 0 ? v.z * scale : 0.0F,
        m.w != 0 ? v.w * scale : 0.0F};
  }
  for (std::int64_t i = 4 * quads + first_index(); i < count; i += index_step()) {
    dx[i] = mask[i] != 0 ? dy[i] * scale : 0.0F;
  }
}

__global__ void sgd_kernel(float momentum, float weight_decay, const ControlBlock* control,
                           const float* gradient, float* weight, float* velocity,
                           std::int64_t count) {
  const float rate = control->learning_rate;
  // As a host rounds, see host_updates.h.
  const auto step = [&](float g, float& w, float& v) {
    v = __fadd_rn(__fmul_rn(momentum, v), __fadd_rn(g, __fmul_rn(weight_decay, w)));
    w = __fsub_rn(w, __fmul_rn(rate, v));
  };
  const std::int64_t quads = count / 4;
  for (std::int64_t i = first_index(); i < quads; i += index_step()) {
    const float4 g = reinterpret_cast<const float4*>(gradient)[i];
    float4 w = reinterpret_cast<float4*>(weight)[i];
    float4 v = reinterpret_cast<float4*>(velocity)[i];
    step(g.x, w.x, v.x);
    step(g.y, w.y, v.y);
    step(g.z, w.z, v.z);
    step(g.w, w.w, v.w);
    reinterpret_cast<float4*>(weight)[i] = w;
    reinterpret_cast<float4*>(velocity)[i] = v;
  }
  for (std::int64_t i = 4 * quads + first_index(); i < count; i += index_step()) {
    step(gradient[i], weight[i], velocity[i]);
  }
}

/// 1 - base to this power.
__device__ double complement_of_power(double base, std::uint64_t exponent) {
  double result = 1;
  for (; exponent > 0; exponent /= 2) {
    if (exponent % 2 == 1) result = __dmul_rn(result, base);
    base = __dmul_rn(base, base);
  }
  return __dsub_rn(1, result);
}

/// nn::adamw_factors, bit for bit.
__device__ AdamwFactors factors_of(const Adamw& a, const ControlBlock& control) {
  const std::uint64_t t = control.iteration + 1;
  const double rate = control.learning_rate;
  return {static_cast<float>(__dsub_rn(1, __dmul_rn(rate, static_cast<double>(a.weight_decay)))),
          static_cast<float>(__ddiv_rn(rate, complement_of_power(a.beta1, t))),
          static_cast<float>(__ddiv_rn(1, __dsqrt_rn(complement_of_power(a.beta2, t))))};
}

__global__ void adamw_kernel(Adamw a, const ControlBlock* control, const float* gradient,
                             float* weight, float* first, float* second, std::int64_t count) {
  __shared__ float keep, rate, root;
  if (threadIdx.x == 0) {
    const AdamwFactors factors = factors_of(a, *control);
    keep = factors.keep;
    rate = factors.step;
    root = factors.root;
  }
  __syncthreads();
  // As a host rounds, see host_updates.h.
  const auto step = [&](float g, float& w, float& m, float& v) {
    m = __fadd_rn(__fmul_rn(a.beta1, m), __fmul_rn(__fsub_rn(1, a.beta1), g));
    v = __fadd_rn(__fmul_rn(a.beta2, v), __fmul_rn(__fsub_rn(1, a.beta2), __fmul_rn(g, g)));
    const float size = __fadd_rn(__fmul_rn(__fsqrt_rn(v), root), a.epsilon);
    w = __fsub_rn(__fmul_rn(keep, w), __fdiv_rn(__fmul_rn(rate, m), size));
  };
  const std::int64_t quads = count / 4;
  for (std::int64_t i = first_index(); i < quads; i += index_step()) {
    const float4 g = reinterpret_cast<const float4*>(gradient)[i];
    float4 w = reinterpret_cast<float4*>(weight)[i];
    float4 m = reinterpret_cast<float4*>(first)[i];
    float4 v = reinterpret_cast<float4*>(second)[i];
    step(g.x, w.x, m.x, v.x);
    step(g.y, w.y, m.y, v.y);
    step(g.z, w.z, m.z, v.z);
    step(g.w, w.w, m.w, v.w);
    reinterpret_cast<float4*>(weight)[i] = w;
    reinterpret_cast<float4*>(first)[i] = m;
    reinterpret_cast<float4*>(second)[i] = v;
  }
  for (std::int64_t i = 4 * quads + first_index(); i < count; i += index_step()) {
    step(gradient[i], weight[i], first[i], second[i]);
  }
}

__global__ void broadcast_rows_kernel(const float* bias, float* y, std::int64_t rows,
                                      std::int64_t columns) {
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    for (std::int64_t column = threadIdx.x; column < columns; column += blockDim.x) {
      y[row * columns + column] = bias[column];
    }
  }
}

__global__ void add_to_channels_kernel(Planes shape, const float* bias, float* y) {
  const std::int64_t count = shape.images * shape.channels * shape.plane;
  for (std::int64_t i = first_index(); i < count; i += index_step()) {
    y[i] += bias[i / shape.plane % shape.channels];
  }
}

__global__ void copy_rows_kernel(Rows r, const float* from, float* to) {
  for (std::int64_t i = first_index(); i < r.rows * r.width; i += index_step()) {
    const std::int64_t row = i / r.width, column = i % r.width;
    to[row * r.to_pitch + column] = from[row * r.from_pitch + column];
  }
}

__global__ void statistics_kernel(float momentum, float unbiased, const float* mean,
                                  const float* variance, float* running_mean,
                                  float* running_variance, std::int64_t channels) {
  for (std::int64_t c = first_index(); c < channels; c += index_step()) {
    // As a host rounds, see host_updates.h.
    const auto step = [&](float& running, float value) {
      running = __fadd_rn(__fmul_rn(__fsub_rn(1, momentum), running), __fmul_rn(momentum, value));
    };
    step(running_mean[c], mean[c]);
    step(running_variance[c], __fmul_rn(variance[c], unbiased));
  }
}

/// A channel is a class; a sample has a plane of labels.
__global__ void softmax_loss_backward_kernel(Planes shape, const float* probabilities,
                                             const std::int32_t* labels, float batch,
                                             float* dlogits) {
  const std::int64_t count = shape.images * shape.channels * shape.plane;
  for (std::int64_t i = first_index(); i < count; i += index_step()) {
    const std::int64_t row = i / shape.plane, place = i % shape.plane;
    const std::int64_t label = labels[row / shape.channels * shape.plane + place];
    const float target = row % shape.channels == label ? 1.0F : 0.0F;
    dlogits[i] = label < 0 ? 0.0F : (probabilities[i] - target) / batch;
  }
}

}  // namespace

void relu_forward(const float* x, float* y, std::int64_t count, cudaStream_t stream) {
  map(Positive{}, y, count, stream, x);
}

void relu_backward(const float* y, const float* dy, float* dx, std::int64_t count,
                   cudaStream_t stream) {
  map(WherePositive{}, dx, count, stream, y, dy);
}

void gelu_forward(const float* x, float* y, std::int64_t count, cudaStream_t stream) {
  map(Gelu{}, y, count, stream, x);
}

void gelu_backward(const float* x, const float* dy, float* dx, std::int64_t count,
                   cudaStream_t stream) {
  map(GeluGradient{}, dx, count, stream, x, dy);
}

void add(const float* a, const float* b, float factor, float* y, std::int64_t count,
         cudaStream_t stream) {
  map(Sum{factor}, y, count, stream, a, b);
}

void scale(float factor, float* x, std::int64_t count, cudaStream_t stream) {
  map(Times{factor}, x, count, stream, static_cast<const float*>(x));
}

void inverse_deviation(float epsilon, const float* variance, float* inverse, std::int64_t count,
                       cudaStream_t stream) {
  map(InverseDeviation{epsilon}, inverse, count, stream, variance);
}

void dropout(const Dropout& d, const ControlBlock* control, const float* x, float* y,
             std::uint8_t* mask, std::int64_t count, cudaStream_t stream) {
  dropout_kernel<<<blocks_for(count / 4 + 3), kThreads, 0, stream>>>(d, control, x, y, mask, count);
  TIDEPOOL_CUDA_CHECK(cudaGetLastError());
}

void dropout_backward(float scale, const std::uint8_t* mask, const float* dy, float* dx,
                      std::int64_t count, cudaStream_t stream) {
  dropout_backward_kernel<<<blocks_for(count / 4 + 3), kThreads, 0, stream>>>(scale, mask, dy, dx,
                                                                              count);
  TIDEPOOL_CUDA_CHECK(cudaGetLastError());
}

void sgd(float momentum, float weight_decay, const ControlBlock* control, const float* gradient,
         float* weight, float* velocity, std::int64_t count, cudaStream_t stream) {
  sgd_kernel<<<blocks_for(count / 4 + 3), kThreads, 0, stream>>>(momentum, weight_decay, control,
                                                                 gradient, weight, velocity, count);
  TIDEPOOL_CUDA_CHECK(cudaGetLastError());
}

void adamw(const Adamw& settings, const ControlBlock* control, const float* gradient, float* weight,
           float* m, float* v, std::int64_t count, cudaStream_t stream) {
  adamw_kernel<<<blocks_for(count / 4 + 3), kThreads, 0, stream>>>(settings, control, gradient,
                                                                   weight, m, v, count);
  TIDEPOOL_CUDA_CHECK(cudaGetLastError());
}

void broadcast_rows(const float* bias, float* y, std::int64_t rows, std::int64_t columns,
                    cudaStream_t stream) {
  broadcast_rows_kernel<<<blocks_for(rows * kThreads), kThreads, 0, stream>>>(bias, y, rows,
                                                                              columns);
  TIDEPOOL_CUDA_CHECK(cudaGetLastError());
}

void add_to_channels(const Planes& shape, const float* bias, float* y, cudaStream_t stream) {
  const std::int64_t count = shape.images * shape.channels * shape.plane;
  add_to_channels_kernel<<<blocks_for(count), kThreads, 0, stream>>>(shape, bias, y);
  TIDEPOOL_CUDA_CHECK(cudaGetLastError());
}

void copy_rows(const Rows& rows, const float* from, float* to, cudaStream_t stream) {
  copy_rows_kernel<<<blocks_for(rows.rows * rows.width), kThreads, 0, stream>>>(rows, from, to);
  TIDEPOOL_CUDA_CHECK(cudaGetLastError());
}

void batch_norm_statistics(float momentum, float unbiased, const float* mean, const float* variance,
                           float* running_mean, float* running_variance, std::int64_t channels,
                           cudaStream_t stream) {
  statistics_kernel<<<blocks_for(channels), kThreads, 0, stream>>>(
      momentum, unbiased, mean, variance, running_mean, running_variance, channels);
  TIDEPOOL_CUDA_CHECK(cudaGetLastError());
}

void softmax_loss_backward(const Planes& shape, const float* probabilities,
                           const std::int32_t* labels, float full_batch, float* dlogits,
                           cudaStream_t stream) {
  const std::int64_t count = shape.images * shape.channels * shape.plane;
  softmax_loss_backward_kernel<<<blocks_for(count), kThreads, 0, stream>>>(
      shape, probabilities, labels, full_batch, dlogits);
  TIDEPOOL_CUDA_CHECK(cudaGetLastError());
}

void load_elementwise() {
  cudaFuncAttributes attributes{};
  TIDEPOOL_CUDA_CHECK(cudaFuncGetAttributes(&attributes, sgd_kernel));
}

}  // namespace tidepool::nn::device_code
