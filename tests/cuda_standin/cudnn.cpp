// A stand-in for cuDNN: the calls this project makes, by their documentation, as plain loops that
// run on the stand-in's streams. Bits differ from algorithm to algorithm, and from run to run for
// those said not to be deterministic, as the real ones' may.
#include <cudnn.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "cuda_standin/cudnn_convolutions.h"
#include "cuda_standin/standin.h"

struct cudnnContext {
  int gpu = standin::current_gpu();
  cudaStream_t stream = nullptr;
  long number = 0;
};
namespace {

using standin::behaviour;
using standin::convolve;
using standin::convolve_back;
using standin::convolve_weights;
using standin::enqueue;
using standin::require_device_range;
using standin::Shape;
using standin::violation;

constexpr std::size_t kAlignment = 256;
constexpr std::int64_t kHandleBytes = 16 << 20;

template <class T>
std::size_t bytes_of(long count) {
  return static_cast<std::size_t>(count) * sizeof(T);
}
const float* floats(const void* p) { return static_cast<const float*>(p); }
float* floats(void* p) { return static_cast<float*>(p); }

/// An operand of a convolution: math types other than FMA let cuDNN round it.
std::vector<float> seen(const void* values, long count, bool tf32) {
  return standin::as_tf32(floats(values), static_cast<std::size_t>(count), tf32);
}

void require_floats(const void* start, long count, const char* what) {
  require_device_range(start, bytes_of<float>(count), what);
}

/// The only blending this project asks for, but of gradients of weights.
void require_plain(const void* alpha, const void* beta) {
  if (*floats(alpha) != 1 || *floats(beta) != 0) violation("cudnn: alpha is not 1 or beta not 0");
}

void use(cudnnHandle_t handle, const std::string& what) {
  standin::require_current(handle->gpu, "cudnn handle");
  standin::first_use(handle->stream, "cudnn handle " + std::to_string(handle->number) + " " + what);
}

cudnnStatus_t check_workspace(const void* start, std::size_t has, std::size_t needs) {
  if (has < needs || (needs > 0 && (start == nullptr ||
                                    reinterpret_cast<std::uintptr_t>(start) % kAlignment != 0))) {
    violation("cudnn: a workspace of %zu bytes at %p where %zu are needed", has, start, needs);
    return CUDNN_STATUS_BAD_PARAM;
  }
  require_device_range(start, needs, "cudnn workspace");
  return CUDNN_STATUS_SUCCESS;
}

/// What lies in a workspace is lost.
void spoil(void* workspace, std::size_t bytes) {
  if (bytes > 0) std::memset(workspace, 0xa5, bytes);
}

/// Differs from call to call, in the last place.
float noise() {
  static int calls = 0;
  return 1 + 6e-8F * static_cast<float>(++calls % 3);
}

/// An algorithm offered for a shape.
struct Offer {
  int algorithm;
  bool deterministic;
  long workspace;  ///< in floats
  bool for_shape = true;
};

std::vector<Offer> forward_offers(const Shape& s) {
  return {{CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, true, s.w.c * s.w.h * s.w.w + 250},
          {CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, true, 0},
          {CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD, true, s.w.k * s.w.c * 16, s.winograd()}};
}
std::vector<Offer> data_offers(const Shape& s) {
  return {{CUDNN_CONVOLUTION_BWD_DATA_ALGO_0, false, 0},
          {CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, true, s.w.k * s.w.h * s.w.w + 250},
          {CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD, true, s.w.k * s.w.c * 16, s.winograd()}};
}
std::vector<Offer> weight_offers(const Shape& s) {
  return {{CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3, false, 257},
          {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, true, s.w.size() + 250},
          {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0, false, 0}};
}

cudnnStatus_t workspace_of(const std::vector<Offer>& offers, int algorithm, std::size_t* bytes) {
  for (const Offer& offer : offers) {
    if (offer.algorithm != algorithm || !offer.for_shape) continue;
    *bytes = bytes_of<float>(offer.workspace);
    if (behaviour().larger_workspaces && *bytes > 0) *bytes += 4096;
    return CUDNN_STATUS_SUCCESS;
  }
  return CUDNN_STATUS_NOT_SUPPORTED;
}

/// As the real one does, lists one algorithm for several math types, and those that do not work.
template <class Result>
void list(std::vector<Offer> offers, bool gradients, int most, int* returned, Result* results) {
  int count = 0;
  const auto put = [&](const Offer& offer, cudnnMathType_t math) {
    if (count == most) return;
    Result& r = results[count++];
    r = {};
    r.algo = static_cast<decltype(r.algo)>(offer.algorithm);
    r.status = offer.for_shape ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_NOT_SUPPORTED;
    r.determinism = offer.deterministic ? CUDNN_DETERMINISTIC : CUDNN_NON_DETERMINISTIC;
    r.mathType = math;
    r.memory = 12345;  // of another math type, say: the size for a call is asked apart
  };
  if (behaviour().no_deterministic && gradients) {
    std::erase_if(offers, [](const Offer& offer) { return offer.deterministic; });
  }
  if (behaviour().other_algorithms) {
    std::reverse(offers.begin(), offers.end());
    if (offers.size() > 2) offers.pop_back();
  }
  for (const Offer& offer : offers) {
    put(offer, CUDNN_TENSOR_OP_MATH);
    put(offer, CUDNN_FMA_MATH);
  }
  *returned = count;
}

Shape shape_of(cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t w, cudnnConvolutionDescriptor_t c,
               cudnnTensorDescriptor_t y) {
  return {*x, *y, *w, *c};
}

cudnnStatus_t check(const Shape& shape, const char* call) {
  if (shape.fits()) return CUDNN_STATUS_SUCCESS;
  violation("%s: shapes that do not go together", call);
  return CUDNN_STATUS_BAD_PARAM;
}

/// Of one channel: calls f(index) for all of its elements.
template <class F>
void for_each_of(const cudnnTensorStruct& x, long channel, F f) {
  for (long n = 0; n < x.n; ++n) {
    for (long i = 0; i < x.h * x.w; ++i) f((n * x.c + channel) * x.h * x.w + i);
  }
}

void check_batch_norm(cudnnBatchNormMode_t mode, const cudnnTensorStruct& x,
                      const cudnnTensorStruct& values) {
  if (mode != CUDNN_BATCHNORM_SPATIAL || values.n != 1 || values.c != x.c || values.h != 1 ||
      values.w != 1) {
    violation("cudnn: batch norm with other modes or descriptors than this project's");
  }
}

}  // namespace

extern "C" {

std::size_t cudnnGetVersion() { return CUDNN_VERSION; }
std::size_t cudnnGetCudartVersion() { return CUDART_VERSION; }
const char* cudnnGetErrorString(cudnnStatus_t status) {
  static thread_local char text[64];
  std::snprintf(text, sizeof text, "cudnn status %d of the stand-in", static_cast<int>(status));
  return text;
}
void cudnnGetLastErrorString(char* message, std::size_t size) {
  if (size > 0) message[0] = '\0';
}

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  static long made = 0;
  *handle = new cudnnContext;
  (*handle)->number = ++made;
  standin::count_device_memory((*handle)->gpu, kHandleBytes);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  standin::require_current(handle->gpu, "cudnn handle");
  standin::count_device_memory(handle->gpu, -kHandleBytes);
  delete handle;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  if (handle->gpu != standin::gpu_of(stream)) {
    violation("cudnnSetStream: handle and stream of different GPUs");
  }
  handle->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t* made) {
  *made = new cudnnTensorStruct;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t descriptor) {
  delete descriptor;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t* made) {
  *made = new cudnnFilterStruct;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t descriptor) {
  delete descriptor;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t* made) {
  *made = new cudnnConvolutionStruct;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t descriptor) {
  delete descriptor;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnCreatePoolingDescriptor(cudnnPoolingDescriptor_t* made) {
  *made = new cudnnPoolingStruct;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroyPoolingDescriptor(cudnnPoolingDescriptor_t descriptor) {
  delete descriptor;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t descriptor,
                                         cudnnTensorFormat_t format, cudnnDataType_t type, int n,
                                         int c, int h, int w) {
  if (n <= 0 || c <= 0 || h <= 0 || w <= 0 || format != CUDNN_TENSOR_NCHW ||
      type != CUDNN_DATA_FLOAT) {
    violation("cudnnSetTensor4dDescriptor: %d x %d x %d x %d", n, c, h, w);
    return CUDNN_STATUS_BAD_PARAM;
  }
  *descriptor = {n, c, h, w};
  return descriptor->size() < (1L << 31) ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_NOT_SUPPORTED;
}
cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t descriptor, cudnnDataType_t,
                                         cudnnTensorFormat_t, int k, int c, int h, int w) {
  *descriptor = {k, c, h, w};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t descriptor,
                                              int padding_h, int padding_w, int stride_h,
                                              int stride_w, int dilation_h, int dilation_w,
                                              cudnnConvolutionMode_t mode, cudnnDataType_t) {
  if (mode != CUDNN_CROSS_CORRELATION) violation("cudnn: a convolution that flips its filter");
  *descriptor = {padding_h,  padding_w,  stride_h,         stride_w,
                 dilation_h, dilation_w, descriptor->math, descriptor->groups};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t descriptor,
                                          cudnnMathType_t math) {
  descriptor->math = math;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t descriptor, int groups) {
  if (groups < 1) return CUDNN_STATUS_BAD_PARAM;
  descriptor->groups = groups;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetPooling2dDescriptor(cudnnPoolingDescriptor_t descriptor,
                                          cudnnPoolingMode_t mode, cudnnNanPropagation_t, int h,
                                          int w, int padding_h, int padding_w, int stride_h,
                                          int stride_w) {
  if (mode != CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING) {
    violation("cudnn: pooling of another mode than this project's");
  }
  *descriptor = {mode, h, w, padding_h, padding_w, stride_h, stride_w};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x, const cudnnFilterDescriptor_t w,
    const cudnnConvolutionDescriptor_t c, const cudnnTensorDescriptor_t y, const int most,
    int* returned, cudnnConvolutionFwdAlgoPerf_t* results) {
  standin::require_current(handle->gpu, "cudnn handle");
  const Shape shape = shape_of(x, w, c, y);
  if (const auto status = check(shape, __func__); status != CUDNN_STATUS_SUCCESS) return status;
  list(forward_offers(shape), false, most, returned, results);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(
    cudnnHandle_t handle, const cudnnFilterDescriptor_t w, const cudnnTensorDescriptor_t dy,
    const cudnnConvolutionDescriptor_t c, const cudnnTensorDescriptor_t dx, const int most,
    int* returned, cudnnConvolutionBwdDataAlgoPerf_t* results) {
  standin::require_current(handle->gpu, "cudnn handle");
  const Shape shape = shape_of(dx, w, c, dy);
  if (const auto status = check(shape, __func__); status != CUDNN_STATUS_SUCCESS) return status;
  list(data_offers(shape), true, most, returned, results);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x, const cudnnTensorDescriptor_t dy,
    const cudnnConvolutionDescriptor_t c, const cudnnFilterDescriptor_t dw, const int most,
    int* returned, cudnnConvolutionBwdFilterAlgoPerf_t* results) {
  standin::require_current(handle->gpu, "cudnn handle");
  const Shape shape = shape_of(x, dw, c, dy);
  if (const auto status = check(shape, __func__); status != CUDNN_STATUS_SUCCESS) return status;
  list(weight_offers(shape), true, most, returned, results);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x, const cudnnFilterDescriptor_t w,
    const cudnnConvolutionDescriptor_t c, const cudnnTensorDescriptor_t y,
    cudnnConvolutionFwdAlgo_t algorithm, std::size_t* bytes) {
  standin::require_current(handle->gpu, "cudnn handle");
  return workspace_of(forward_offers(shape_of(x, w, c, y)), algorithm, bytes);
}
cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(
    cudnnHandle_t handle, const cudnnFilterDescriptor_t w, const cudnnTensorDescriptor_t dy,
    const cudnnConvolutionDescriptor_t c, const cudnnTensorDescriptor_t dx,
    cudnnConvolutionBwdDataAlgo_t algorithm, std::size_t* bytes) {
  standin::require_current(handle->gpu, "cudnn handle");
  return workspace_of(data_offers(shape_of(dx, w, c, dy)), algorithm, bytes);
}
cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x, const cudnnTensorDescriptor_t dy,
    const cudnnConvolutionDescriptor_t c, const cudnnFilterDescriptor_t dw,
    cudnnConvolutionBwdFilterAlgo_t algorithm, std::size_t* bytes) {
  standin::require_current(handle->gpu, "cudnn handle");
  return workspace_of(weight_offers(shape_of(x, dw, c, dy)), algorithm, bytes);
}

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void* alpha,
                                      const cudnnTensorDescriptor_t xd, const void* x,
                                      const cudnnFilterDescriptor_t wd, const void* w,
                                      const cudnnConvolutionDescriptor_t cd,
                                      cudnnConvolutionFwdAlgo_t algorithm, void* workspace,
                                      std::size_t workspace_bytes, const void* beta,
                                      const cudnnTensorDescriptor_t yd, void* y) {
  require_plain(alpha, beta);
  const Shape s = shape_of(xd, wd, cd, yd);
  std::size_t needs = 0;
  if (const auto status = workspace_of(forward_offers(s), algorithm, &needs); status != 0) {
    return status;
  }
  if (const auto status = check_workspace(workspace, workspace_bytes, needs); status != 0) {
    return status;
  }
  require_floats(x, s.x.size(), "convolution x");
  require_floats(w, s.w.size(), "convolution weight");
  require_floats(y, s.y.size(), "convolution y");
  use(handle, "forward " + std::to_string(algorithm));
  enqueue(
      handle->stream,
      [=] {
        spoil(workspace, needs);
        const bool tf32 = s.c.math != CUDNN_FMA_MATH;
        const auto seen_x = seen(x, s.x.size(), tf32), seen_w = seen(w, s.w.size(), tf32);
        if (algorithm == CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM) {
          convolve<float>(s, seen_x.data(), seen_w.data(), floats(y), 1);
        } else {
          const bool winograd = algorithm == CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD;
          convolve<double>(s, seen_x.data(), seen_w.data(), floats(y), winograd ? 1.0000001F : 1);
        }
      },
      "cudnnConvolutionForward");
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, const void* alpha,
                                           const cudnnFilterDescriptor_t wd, const void* w,
                                           const cudnnTensorDescriptor_t dyd, const void* dy,
                                           const cudnnConvolutionDescriptor_t cd,
                                           cudnnConvolutionBwdDataAlgo_t algorithm, void* workspace,
                                           std::size_t workspace_bytes, const void* beta,
                                           const cudnnTensorDescriptor_t dxd, void* dx) {
  require_plain(alpha, beta);
  const Shape s = shape_of(dxd, wd, cd, dyd);
  std::size_t needs = 0;
  if (const auto status = workspace_of(data_offers(s), algorithm, &needs); status != 0) {
    return status;
  }
  if (const auto status = check_workspace(workspace, workspace_bytes, needs); status != 0) {
    return status;
  }
  require_floats(dx, s.x.size(), "convolution dx");
  require_floats(w, s.w.size(), "convolution weight");
  require_floats(dy, s.y.size(), "convolution dy");
  use(handle, "backward data " + std::to_string(algorithm));
  enqueue(
      handle->stream,
      [=] {
        spoil(workspace, needs);
        const bool tf32 = s.c.math != CUDNN_FMA_MATH;
        const bool noisy = algorithm == CUDNN_CONVOLUTION_BWD_DATA_ALGO_0;
        const bool winograd = algorithm == CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD;
        const auto seen_dy = seen(dy, s.y.size(), tf32), seen_w = seen(w, s.w.size(), tf32);
        convolve_back(s, seen_dy.data(), seen_w.data(), floats(dx),
                      noisy ? noise() : (winograd ? 1.0000001F : 1));
      },
      "cudnnConvolutionBackwardData");
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnConvolutionBackwardFilter(
    cudnnHandle_t handle, const void* alpha, const cudnnTensorDescriptor_t xd, const void* x,
    const cudnnTensorDescriptor_t dyd, const void* dy, const cudnnConvolutionDescriptor_t cd,
    cudnnConvolutionBwdFilterAlgo_t algorithm, void* workspace, std::size_t workspace_bytes,
    const void* beta, const cudnnFilterDescriptor_t dwd, void* dw) {
  const bool adds = *floats(beta) == 1;
  if (!adds) require_plain(alpha, beta);
  const Shape s = shape_of(xd, dwd, cd, dyd);
  std::size_t needs = 0;
  if (const auto status = workspace_of(weight_offers(s), algorithm, &needs); status != 0) {
    return status;
  }
  if (const auto status = check_workspace(workspace, workspace_bytes, needs); status != 0) {
    return status;
  }
  require_floats(x, s.x.size(), "convolution x");
  require_floats(dw, s.w.size(), "convolution dweight");
  require_floats(dy, s.y.size(), "convolution dy");
  use(handle, "backward weights " + std::to_string(algorithm));
  enqueue(
      handle->stream,
      [=] {
        spoil(workspace, needs);
        const bool tf32 = s.c.math != CUDNN_FMA_MATH;
        const bool noisy = algorithm != CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1;
        const auto seen_x = seen(x, s.x.size(), tf32), seen_dy = seen(dy, s.y.size(), tf32);
        const auto before = adds ? seen(dw, s.w.size(), false) : std::vector<float>{};
        convolve_weights(s, seen_x.data(), seen_dy.data(), floats(dw), noisy ? noise() : 1);
        for (std::size_t i = 0; i < before.size(); ++i) floats(dw)[i] += before[i];
      },
      "cudnnConvolutionBackwardFilter");
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBatchNormalizationForwardTraining(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, const void* alpha, const void* beta,
    const cudnnTensorDescriptor_t xd, const void* x, const cudnnTensorDescriptor_t, void* y,
    const cudnnTensorDescriptor_t values, const void* scale, const void* bias, double factor,
    void* running_mean, void* running_variance, double epsilon, void* saved_mean,
    void* saved_inverse) {
  require_plain(alpha, beta);
  check_batch_norm(mode, *xd, *values);
  if ((running_mean == nullptr) != (running_variance == nullptr) ||
      (saved_mean == nullptr) != (saved_inverse == nullptr) || saved_mean != nullptr ||
      epsilon < CUDNN_BN_MIN_EPSILON) {
    violation("cudnn: batch norm with one of two results, or with saved ones");
    return CUDNN_STATUS_BAD_PARAM;
  }
  const cudnnTensorStruct s = *xd;
  require_floats(x, s.size(), "batch norm x");
  require_floats(y, s.size(), "batch norm y");
  require_floats(running_mean, s.c, "batch norm mean");
  require_floats(running_variance, s.c, "batch norm variance");
  use(handle, "batch norm forward");
  enqueue(
      handle->stream,
      [=] {
        const double count = static_cast<double>(s.n * s.h * s.w);
        for (long c = 0; c < s.c; ++c) {
          double sum = 0, squares = 0;
          for_each_of(s, c, [&](long i) { sum += floats(x)[i]; });
          const double mean = sum / count;
          for_each_of(s, c, [&](long i) {
            const double d = floats(x)[i] - mean;
            squares += d * d;
          });
          const double variance = squares / count, inverse = 1 / std::sqrt(variance + epsilon);
          for_each_of(s, c, [&](long i) {
            floats(y)[i] = static_cast<float>((floats(x)[i] - mean) * inverse * floats(scale)[c] +
                                              floats(bias)[c]);
          });
          float& m = floats(running_mean)[c];
          float& v = floats(running_variance)[c];
          m = static_cast<float>(m * (1 - factor) + mean * factor);
          v = static_cast<float>(v * (1 - factor) + variance * count / (count - 1) * factor);
        }
      },
      "cudnnBatchNormalizationForwardTraining");
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBatchNormalizationForwardInference(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, const void* alpha, const void* beta,
    const cudnnTensorDescriptor_t xd, const void* x, const cudnnTensorDescriptor_t, void* y,
    const cudnnTensorDescriptor_t values, const void* scale, const void* bias, const void* mean,
    const void* variance, double epsilon) {
  require_plain(alpha, beta);
  check_batch_norm(mode, *xd, *values);
  const cudnnTensorStruct s = *xd;
  require_floats(x, s.size(), "batch norm x");
  require_floats(y, s.size(), "batch norm y");
  use(handle, "batch norm inference");
  enqueue(
      handle->stream,
      [=] {
        for (long c = 0; c < s.c; ++c) {
          const double inverse = 1 / std::sqrt(floats(variance)[c] + epsilon);
          for_each_of(s, c, [&](long i) {
            floats(y)[i] = static_cast<float>(
                (floats(x)[i] - floats(mean)[c]) * inverse * floats(scale)[c] + floats(bias)[c]);
          });
        }
      },
      "cudnnBatchNormalizationForwardInference");
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBatchNormalizationBackward(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, const void* alpha_data, const void* beta_data,
    const void* alpha_values, const void* beta_values, const cudnnTensorDescriptor_t xd,
    const void* x, const cudnnTensorDescriptor_t, const void* dy, const cudnnTensorDescriptor_t,
    void* dx, const cudnnTensorDescriptor_t values, const void* scale, void* dscale, void* dbias,
    double /*epsilon*/, const void* saved_mean, const void* saved_inverse) {
  require_plain(alpha_data, beta_data);
  require_plain(alpha_values, beta_values);
  check_batch_norm(mode, *xd, *values);
  if (dx == dy || dx == x) violation("cudnn: batch norm backward in place");
  const cudnnTensorStruct s = *xd;
  require_floats(x, s.size(), "batch norm x");
  require_floats(dy, s.size(), "batch norm dy");
  require_floats(dx, s.size(), "batch norm dx");
  require_floats(saved_inverse, s.c, "batch norm inverse deviation");
  use(handle, "batch norm backward");
  enqueue(
      handle->stream,
      [=] {
        const double count = static_cast<double>(s.n * s.h * s.w);
        for (long c = 0; c < s.c; ++c) {
          const double mean = floats(saved_mean)[c], inverse = floats(saved_inverse)[c];
          double sum = 0, product = 0;
          for_each_of(s, c, [&](long i) {
            const double d = floats(dy)[i];
            sum += d;
            product += d * (floats(x)[i] - mean) * inverse;
          });
          for_each_of(s, c, [&](long i) {
            const double normal = (floats(x)[i] - mean) * inverse;
            floats(dx)[i] =
                static_cast<float>(floats(scale)[c] * inverse *
                                   (floats(dy)[i] - sum / count - normal * product / count));
          });
          floats(dscale)[c] = static_cast<float>(product);
          floats(dbias)[c] = static_cast<float>(sum);
        }
      },
      "cudnnBatchNormalizationBackward");
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnPoolingForward(cudnnHandle_t handle, const cudnnPoolingDescriptor_t pd,
                                  const void* alpha, const cudnnTensorDescriptor_t xd,
                                  const void* x, const void* beta, const cudnnTensorDescriptor_t yd,
                                  void* y) {
  require_plain(alpha, beta);
  const cudnnTensorStruct in = *xd, out = *yd;
  const cudnnPoolingStruct p = *pd;
  if (out.h != 1 + (in.h + 2 * p.padding_h - p.h) / p.stride_h ||
      out.w != 1 + (in.w + 2 * p.padding_w - p.w) / p.stride_w) {
    violation("cudnnPoolingForward: shapes that do not go together");
    return CUDNN_STATUS_BAD_PARAM;
  }
  require_floats(x, in.size(), "pooling x");
  require_floats(y, out.size(), "pooling y");
  use(handle, "pooling forward");
  enqueue(
      handle->stream,
      [=] {
        for (long plane = 0; plane < in.n * in.c; ++plane) {
          for (long i = 0; i < out.h; ++i) {
            for (long j = 0; j < out.w; ++j) {
              double sum = 0;
              const long places = p.for_each_place(
                  in, i, j, [&](long place) { sum += floats(x)[plane * in.h * in.w + place]; });
              floats(y)[(plane * out.h + i) * out.w + j] =
                  static_cast<float>(sum / static_cast<double>(places));
            }
          }
        }
      },
      "cudnnPoolingForward");
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnPoolingBackward(cudnnHandle_t handle, const cudnnPoolingDescriptor_t pd,
                                   const void* alpha, const cudnnTensorDescriptor_t, const void*,
                                   const cudnnTensorDescriptor_t dyd, const void* dy,
                                   const cudnnTensorDescriptor_t, const void*, const void* beta,
                                   const cudnnTensorDescriptor_t dxd, void* dx) {
  require_plain(alpha, beta);
  const cudnnTensorStruct in = *dxd, out = *dyd;
  const cudnnPoolingStruct p = *pd;
  require_floats(dx, in.size(), "pooling dx");
  require_floats(dy, out.size(), "pooling dy");
  use(handle, "pooling backward");
  enqueue(
      handle->stream,
      [=] {
        std::fill_n(floats(dx), in.size(), 0.0F);
        for (long plane = 0; plane < in.n * in.c; ++plane) {
          for (long i = 0; i < out.h; ++i) {
            for (long j = 0; j < out.w; ++j) {
              const long places = p.for_each_place(in, i, j, [](long) {});
              const float share =
                  floats(dy)[(plane * out.h + i) * out.w + j] / static_cast<float>(places);
              p.for_each_place(
                  in, i, j, [&](long place) { floats(dx)[plane * in.h * in.w + place] += share; });
            }
          }
        }
      },
      "cudnnPoolingBackward");
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSoftmaxForward(cudnnHandle_t handle, cudnnSoftmaxAlgorithm_t algorithm,
                                  cudnnSoftmaxMode_t mode, const void* alpha,
                                  const cudnnTensorDescriptor_t xd, const void* x, const void* beta,
                                  const cudnnTensorDescriptor_t, void* y) {
  require_plain(alpha, beta);
  const cudnnTensorStruct s = *xd;
  if (mode != CUDNN_SOFTMAX_MODE_CHANNEL || algorithm != CUDNN_SOFTMAX_ACCURATE) {
    violation("cudnnSoftmaxForward of other modes than this project's");
  }
  require_floats(x, s.size(), "softmax x");
  require_floats(y, s.size(), "softmax y");
  use(handle, "softmax");
  enqueue(
      handle->stream,
      [=] {
        const long plane = s.h * s.w;
        for (long i = 0; i < s.n * plane; ++i) {
          const long first = i / plane * s.c * plane + i % plane;
          const float* from = floats(x) + first;
          double most = from[0], sum = 0;
          for (long k = 1; k < s.c; ++k) most = std::max<double>(most, from[k * plane]);
          for (long k = 0; k < s.c; ++k) sum += std::exp(from[k * plane] - most);
          for (long k = 0; k < s.c; ++k) {
            floats(y)[first + k * plane] =
                static_cast<float>(std::exp(from[k * plane] - most) / sum);
          }
        }
      },
      "cudnnSoftmaxForward");
  return CUDNN_STATUS_SUCCESS;
}

}  // extern "C"
