// What device code finds where nvcc would give it CUDA's own. Files made by convert_device_code.py
// start with it.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <typeinfo>

#include "cuda_standin/emulator.h"
#include "cuda_standin/standin.h"

#undef __global__
#undef __device__
#undef __host__
#undef __shared__
#undef __forceinline__
#undef __restrict__
#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __restrict__
// Blocks run one after another, so one copy does; see shared_variable.
#define __shared__ static

#define threadIdx (::standin::place().thread)
#define blockIdx (::standin::place().block)
#define blockDim (::standin::place().block_dim)
#define gridDim (::standin::place().grid_dim)

namespace standin {

template <class F>
void launch(const char* name, F body, dim3 grid, dim3 block, std::size_t shared,
            cudaStream_t stream) {
  launch_kernel(grid, block, shared, stream, name, typeid(F).name(), std::move(body));
}

template <class T>
T shuffle(T value, int source) {
  static_assert(sizeof(T) <= sizeof(std::uint64_t));
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  bits = warp_exchange(bits, source);
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

}  // namespace standin

namespace standin {

/// This project's warps are whole.
inline void require_all_lanes(unsigned mask) {
  if (mask != ~0U) violation("an exchange of %08x, not of all lanes", mask);
}

}  // namespace standin

inline void __syncthreads() { standin::block_barrier(); }
template <class T>
T __shfl_down_sync(unsigned mask, T value, int offset) {
  standin::require_all_lanes(mask);
  const int source = standin::lane() + offset;
  return standin::shuffle(value, source < 32 ? source : standin::lane());
}
template <class T>
T __shfl_xor_sync(unsigned lanes, T value, int mask) {
  standin::require_all_lanes(lanes);
  return standin::shuffle(value, standin::lane() ^ mask);
}
inline int __all_sync(unsigned mask, int predicate) {
  standin::require_all_lanes(mask);
  return standin::warp_all(predicate != 0) ? 1 : 0;
}
// Rounded each by itself.
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fsqrt_rn(float x) { return std::sqrt(x); }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __dsub_rn(double a, double b) { return a - b; }
inline double __ddiv_rn(double a, double b) { return a / b; }
inline double __dsqrt_rn(double x) { return std::sqrt(x); }
inline int atomicAdd(int* to, int value) {
  const int old = *to;
  *to += value;
  return old;
}
inline float normcdff(float x) { return 0.5F * std::erfc(-x * 0.70710678118654752F); }
template <class Kernel>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* /*attributes*/, Kernel* /*kernel*/) {
  return cudaSuccess;
}
using std::max;
using std::min;
