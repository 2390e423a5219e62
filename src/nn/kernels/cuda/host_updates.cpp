#include "nn/kernels/cuda/host_updates.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <thread>

#include "base/parallel.h"
#include "nn/kernels/function_kernel.h"
#include "nn/ops/adamw.h"
#include "nn/ops/batch_norm.h"

namespace tidepool::nn {
namespace {

/// Calls body(begin, end) on parts of [0, count), on several threads where it is worth it.
template <class Body>
void in_parts(std::int64_t count, const Body& body) {
  constexpr std::int64_t kPart = 1 << 16;
  constexpr unsigned kMostThreads = 16;  // more do not move more bytes
  static std::mutex mutex;
  // Lives as long as the process.
  static auto* const pool =
      new ThreadPool(std::clamp(std::thread::hardware_concurrency(), 1U, kMostThreads));
  if (count <= kPart) return body(std::int64_t{0}, count);
  const std::lock_guard lock(mutex);
  pool->each(static_cast<std::size_t>((count + kPart - 1) / kPart), [&](std::size_t part) {
    const std::int64_t begin = static_cast<std::int64_t>(part) * kPart;
    body(begin, std::min(count, begin + kPart));
  });
}

float* floats(Pointers pointers, std::size_t operand) {
  return reinterpret_cast<float*>(pointers[operand]);
}

std::int64_t elements(const OpDesc& desc) {
  return desc.operands[0].bytes() / static_cast<Bytes>(sizeof(float));
}

void add(const OpDesc& desc, Pointers pointers, std::byte*, const KernelContext&) {
  float* const sum = floats(pointers, 0);
  const float* const other = floats(pointers, 1);
  const float factor = desc.get<AddForward>().factor;
  in_parts(elements(desc), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) sum[i] += factor * other[i];
  });
}

void sgd(const OpDesc& desc, Pointers pointers, std::byte*, const KernelContext&) {
  const auto& op = desc.get<SgdUpdate>();
  const float* const gradient = floats(pointers, 0);
  const float rate = reinterpret_cast<const ControlBlock*>(pointers[1])->learning_rate;
  float *const weight = floats(pointers, 2), *const momentum = floats(pointers, 3);
  in_parts(elements(desc), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const float decayed = gradient[i] + op.weight_decay * weight[i];
      momentum[i] = op.momentum * momentum[i] + decayed;
      weight[i] -= rate * momentum[i];
    }
  });
}

void adamw(const OpDesc& desc, Pointers pointers, std::byte*, const KernelContext&) {
  const auto& op = desc.get<AdamwUpdate>();
  const float* const gradient = floats(pointers, 0);
  const AdamwFactors factors =
      adamw_factors(op, *reinterpret_cast<const ControlBlock*>(pointers[1]));
  float *const weight = floats(pointers, 2), *const first = floats(pointers, 3),
               *const second = floats(pointers, 4);
  in_parts(elements(desc), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const float g = gradient[i];
      const float m = op.beta1 * first[i] + (1 - op.beta1) * g;
      const float v = op.beta2 * second[i] + (1 - op.beta2) * (g * g);
      first[i] = m;
      second[i] = v;
      weight[i] =
          factors.keep * weight[i] - factors.step * m / (std::sqrt(v) * factors.root + op.epsilon);
    }
  });
}

void statistics(const OpDesc& desc, Pointers pointers, std::byte*, const KernelContext&) {
  const auto& op = desc.get<BatchNormStatistics>();
  const auto n = static_cast<float>(op.values);
  const float unbiased = op.values > 1 ? n / (n - 1) : 1.0F;
  const float *const mean = floats(pointers, 0), *const variance = floats(pointers, 1);
  float *const running_mean = floats(pointers, 2), *const running_variance = floats(pointers, 3);
  for (std::int64_t c = 0; c < elements(desc); ++c) {
    running_mean[c] = (1 - op.momentum) * running_mean[c] + op.momentum * mean[c];
    running_variance[c] =
        (1 - op.momentum) * running_variance[c] + op.momentum * (variance[c] * unbiased);
  }
}

std::unique_ptr<Kernel> make(const OpDesc& desc, const KernelContext& context) {
  KernelFunction function = nullptr;
  if (desc.is<AddForward>() && desc.in_place) function = add;
  if (desc.is<SgdUpdate>()) function = sgd;
  if (desc.is<AdamwUpdate>()) function = adamw;
  if (desc.is<BatchNormStatistics>()) function = statistics;
  if (function == nullptr) return nullptr;
  return std::make_unique<FunctionKernel>(desc, context, "host", function);
}

}  // namespace

const KernelList& cuda_host_kernels() {
  static const auto* const list = new KernelList{"cuda-host", 1, {make}};
  return *list;
}

}  // namespace tidepool::nn
