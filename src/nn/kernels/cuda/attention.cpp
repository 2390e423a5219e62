// Attention: products of all heads by cuBLAS' batched ones, softmax by our own kernels.
#include "nn/kernels/cuda/cublas_product.h"
#include "nn/kernels/cuda/factories.h"
#include "nn/kernels/cuda/launch.h"

namespace tidepool::nn::cuda_kernels_detail {
namespace {

/// An operand of an attention op: a row-major matrix for each sample and head.
struct Matrices {
  float* data;
  int columns;       ///< from one row to the next
  long long head;    ///< from one head to the next
  long long sample;  ///< from one sample to the next
};

class AttentionProduct final : public CublasKernel {
 public:
  using CublasKernel::CublasKernel;

 private:
  static Matrices rows(float* data, int width, int heads, int tokens) {
    return {data, width, width / heads, static_cast<long long>(width) * tokens};
  }
  static Matrices square(float* data, int heads, int tokens) {
    const long long area = static_cast<long long>(tokens) * tokens;
    return {data, tokens, area, area * heads};
  }

  void multiply(Pointers p, std::byte* /*own*/, const CudaStream& s) override {
    constexpr auto kAsIs = CUBLAS_OP_N, kTransposed = CUBLAS_OP_T;
    const OpDesc& d = desc();
    const bool scores = d.is<AttentionScores>();
    const TensorDesc& squares = d.operands[scores ? 2 : 0];
    const int samples = dim(squares, 0), heads = dim(squares, 1), tokens = dim(squares, 2);
    const int width = dim(d.operands[1], 2), head = width / heads;
    const Matrices right = rows(operand(p, 1), width, heads, tokens);
    if (scores) {  // s = a b'
      products(s, samples, heads, tokens, tokens, head, kAsIs,
               rows(operand(p, 0), width, heads, tokens), kTransposed, right,
               square(operand(p, 2), heads, tokens));
    } else {  // y = s b or s' a
      products(s, samples, heads, tokens, head, tokens, d.is<AttentionMix>() ? kAsIs : kTransposed,
               square(operand(p, 0), heads, tokens), kAsIs, right,
               rows(operand(p, 2), width, heads, tokens));
    }
  }

  /// The row-major products `to` (rows x columns) = scale * a * b. Heads and samples lie at
  /// distances of their own: one batched call for each of those that are fewer.
  void products(const CudaStream& s, int samples, int heads, int rows, int columns, int inner,
                cublasOperation_t of_a, const Matrices& a, cublasOperation_t of_b,
                const Matrices& b, const Matrices& to) const {
    const float scale = desc().get<AttentionScale>().scale;
    const bool by_sample = samples <= heads;
    const auto step = [&](const Matrices& m) { return by_sample ? m.sample : m.head; };
    const auto stride = [&](const Matrices& m) { return by_sample ? m.head : m.sample; };
    for (int i = 0; i < (by_sample ? samples : heads); ++i) {
      TIDEPOOL_CUDA_CHECK(cublas().cublasSgemmStridedBatched(
          s.cublas(), of_b, of_a, columns, rows, inner, &scale, b.data + i * step(b), b.columns,
          stride(b), a.data + i * step(a), a.columns, stride(a), &kZero, to.data + i * step(to),
          to.columns, stride(to), by_sample ? heads : samples));
    }
  }
};

class AttentionSoftmax final : public CudaKernel {
 public:
  explicit AttentionSoftmax(const OpDesc& desc) : CudaKernel(desc) { add_algorithm("own", 0); }

 private:
  void enqueue(int, Pointers p, std::byte*, const CudaStream& s) override {
    const TensorDesc& square = desc().operands[0];
    const std::int64_t tokens = square.dims[3], rows = square.elements() / tokens;
    if (const auto* op = desc().find<AttentionSoftmaxForward>()) {
      device_code::attention_softmax(operand(p, 0), operand(p, desc().in_place ? 0 : 1), rows,
                                     tokens, op->causal, s.stream());
    } else {
      device_code::attention_softmax_backward(operand(p, 0), operand(p, 1),
                                              operand(p, desc().in_place ? 1 : 2), rows, tokens,
                                              s.stream());
    }
  }
};

}  // namespace

std::unique_ptr<Kernel> make_attention(const OpDesc& desc, const KernelContext& context) {
  if (desc.find<AttentionScale>() != nullptr) {
    return std::make_unique<AttentionProduct>(desc, context.tf32);
  }
  if (desc.is<AttentionSoftmaxForward>() || desc.is<AttentionSoftmaxBackward>()) {
    return std::make_unique<AttentionSoftmax>(desc);
  }
  return nullptr;
}

}  // namespace tidepool::nn::cuda_kernels_detail
