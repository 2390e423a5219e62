// A stand-in for cuBLAS: the calls this project makes, on the stand-in's streams. Bits depend on
// the size of the workspace, as the real one's may.
#include <cublas_v2.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "cuda_standin/standin.h"

struct cublasContext {
  int gpu = standin::current_gpu();
  cudaStream_t stream = nullptr;
  void* workspace = nullptr;
  std::size_t workspace_bytes = 0;
  cublasMath_t math = CUBLAS_DEFAULT_MATH;
  long number = 0;
};

namespace {

constexpr std::size_t kAlignment = 256;
constexpr std::int64_t kHandleBytes = 8 << 20;
/// From here on sums are kept in double.
constexpr std::size_t kLarge = 1 << 20;

/// A matrix in memory by columns, or its transpose.
struct Operand {
  const float* data;
  long leading;
  bool transposed;
  [[nodiscard]] float at(long row, long column) const {
    return transposed ? data[row * leading + column] : data[column * leading + row];
  }
};

template <class Sum>
void multiply(const Operand& a, const Operand& b, long m, long n, long k, float alpha, float beta,
              float* c, long leading) {
  std::vector<Sum> sums(static_cast<std::size_t>(m));
  std::vector<float> columns(static_cast<std::size_t>(m * k));  // of a, one behind the other
  for (long p = 0; p < k; ++p) {
    for (long i = 0; i < m; ++i) columns[static_cast<std::size_t>(p * m + i)] = a.at(i, p);
  }
  for (long j = 0; j < n; ++j) {
    std::fill(sums.begin(), sums.end(), Sum{0});
    long p = 0;
    for (; p + 4 <= k; p += 4) {
      const float* column = columns.data() + p * m;
      const Sum f0 = b.at(p, j), f1 = b.at(p + 1, j), f2 = b.at(p + 2, j), f3 = b.at(p + 3, j);
      for (long i = 0; i < m; ++i) {
        sums[static_cast<std::size_t>(i)] +=
            (static_cast<Sum>(column[i]) * f0 + static_cast<Sum>(column[m + i]) * f1) +
            (static_cast<Sum>(column[2 * m + i]) * f2 + static_cast<Sum>(column[3 * m + i]) * f3);
      }
    }
    for (; p < k; ++p) {
      const float* column = columns.data() + p * m;
      const Sum factor = b.at(p, j);
      for (long i = 0; i < m; ++i) {
        sums[static_cast<std::size_t>(i)] += static_cast<Sum>(column[i]) * factor;
      }
    }
    for (long i = 0; i < m; ++i) {
      float& to = c[j * leading + i];
      const float product = alpha * static_cast<float>(sums[static_cast<std::size_t>(i)]);
      to = beta == 0 ? product : product + beta * to;  // with 0 it is not read
    }
  }
}

struct Sizes {
  int m, n, k;
};

/// Matrices in memory, `stride` elements from one to the next.
template <class T>
struct Matrices {
  T* data;
  int leading;
  long long stride;
  [[nodiscard]] std::size_t floats(long rows, long columns, int count) const {
    return static_cast<std::size_t>(stride * (count - 1) + long{leading} * (columns - 1) + rows);
  }
};

/// Of matrices that are written, none may lie in another: in its rows it may.
bool overlap(const Matrices<float>& c, const Sizes& size, int count) {
  if (count < 2) return false;
  const bool apart = c.stride >= long{c.leading} * size.n;
  const bool beside = c.stride >= size.m && c.stride * (count - 1) + size.m <= c.leading;
  return !apart && !beside;
}

cublasStatus_t products(cublasHandle_t handle, cublasOperation_t transpose_a,
                        cublasOperation_t transpose_b, const Sizes& size, float alpha,
                        const Matrices<const float>& a, const Matrices<const float>& b, float beta,
                        const Matrices<float>& c, int count) {
  const auto [m, n, k] = size;
  standin::require_current(handle->gpu, "cublas handle");
  const bool ta = transpose_a != CUBLAS_OP_N, tb = transpose_b != CUBLAS_OP_N;
  if (a.leading < (ta ? k : m) || b.leading < (tb ? n : k) || c.leading < m || count < 1) {
    standin::violation("cublasSgemm: a leading dimension below the rows");
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (overlap(c, size, count)) standin::violation("cublasSgemm: matrices of C overlap");
  if (handle->workspace == nullptr) {
    standin::violation("cublasSgemm without a workspace: it would use one of its own");
  }
  const std::size_t floats_a = a.floats(ta ? k : m, ta ? m : k, count);
  const std::size_t floats_b = b.floats(tb ? n : k, tb ? k : n, count);
  standin::require_device_range(a.data, floats_a * sizeof(float), "cublasSgemm A");
  standin::require_device_range(b.data, floats_b * sizeof(float), "cublasSgemm B");
  standin::require_device_range(c.data, c.floats(m, n, count) * sizeof(float), "cublasSgemm C");
  standin::first_use(handle->stream, "cublas handle " + std::to_string(handle->number) +
                                         (ta ? " T" : " N") + (tb ? "T" : "N") +
                                         (count > 1 ? " batched" : ""));
  standin::enqueue(
      handle->stream,
      [=, m = size.m, n = size.n, k = size.k, workspace = handle->workspace,
       bytes = handle->workspace_bytes, tf32 = handle->math == CUBLAS_TF32_TENSOR_OP_MATH] {
        if (bytes > 0) std::memset(workspace, 0xa5, bytes);
        const std::vector<float> seen_a = standin::as_tf32(a.data, floats_a, tf32);
        const std::vector<float> seen_b = standin::as_tf32(b.data, floats_b, tf32);
        const auto product = bytes < kLarge ? multiply<float> : multiply<double>;
        for (int i = 0; i < count; ++i) {
          const Operand left{seen_a.data() + i * a.stride, a.leading, ta};
          const Operand right{seen_b.data() + i * b.stride, b.leading, tb};
          product(left, right, m, n, k, alpha, beta, c.data + i * c.stride, c.leading);
        }
      },
      "cublasSgemm");
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace

extern "C" {

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  static long made = 0;
  *handle = new cublasContext;
  (*handle)->number = ++made;
  standin::count_device_memory((*handle)->gpu, kHandleBytes);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  standin::require_current(handle->gpu, "cublas handle");
  standin::count_device_memory(handle->gpu, -kHandleBytes);
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}
/// Takes the workspace away.
cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  if (handle->gpu != standin::gpu_of(stream)) {
    standin::violation("cublasSetStream: handle and stream of different GPUs");
  }
  handle->stream = stream;
  handle->workspace = nullptr;
  handle->workspace_bytes = 0;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void* workspace, std::size_t bytes) {
  if (workspace == nullptr || reinterpret_cast<std::uintptr_t>(workspace) % kAlignment != 0) {
    standin::violation("cublasSetWorkspace: %p", workspace);
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  standin::require_device_range(workspace, bytes, "cublas workspace");
  handle->workspace = workspace;
  handle->workspace_bytes = bytes;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t math) {
  handle->math = math;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasGetProperty(libraryPropertyType type, int* value) {
  *value = type == MAJOR_VERSION ? CUBLAS_VER_MAJOR : 0;
  return CUBLAS_STATUS_SUCCESS;
}
const char* cublasGetStatusString(cublasStatus_t) { return "a cublas status of the stand-in"; }

cublasStatus_t cublasSgemm_v2(cublasHandle_t handle, cublasOperation_t transpose_a,
                              cublasOperation_t transpose_b, int m, int n, int k,
                              const float* alpha, const float* a, int lda, const float* b, int ldb,
                              const float* beta, float* c, int ldc) {
  return products(handle, transpose_a, transpose_b, {m, n, k}, *alpha, {a, lda, 0}, {b, ldb, 0},
                  *beta, {c, ldc, 0}, 1);
}

cublasStatus_t cublasSgemmStridedBatched(cublasHandle_t handle, cublasOperation_t transpose_a,
                                         cublasOperation_t transpose_b, int m, int n, int k,
                                         const float* alpha, const float* a, int lda,
                                         long long stride_a, const float* b, int ldb,
                                         long long stride_b, const float* beta, float* c, int ldc,
                                         long long stride_c, int count) {
  return products(handle, transpose_a, transpose_b, {m, n, k}, *alpha, {a, lda, stride_a},
                  {b, ldb, stride_b}, *beta, {c, ldc, stride_c}, count);
}

}  // extern "C"
