// Linear layers by cuBLAS.
#include "nn/kernels/cuda/cublas_product.h"
#include "nn/kernels/cuda/factories.h"
#include "nn/kernels/cuda/launch.h"

namespace tidepool::nn::cuda_kernels_detail {
namespace {

/// Where the op adds to a gradient, the workspace has this round's: a product of cuBLAS that adds
/// to what is there (beta 1) need not have the bits of the sum of both (seen on an H200).
Bytes room_for(const OpDesc& desc, std::size_t operand) {
  constexpr Bytes kAligned = 256;
  return desc.adds(operand) ? align_up(desc.operands[operand].bytes(), kAligned) : 0;
}

class LinearKernel final : public CublasKernel {
 public:
  LinearKernel(const OpDesc& desc, bool tf32)
      : CublasKernel(desc, tf32, room_for(desc, 2) + room_for(desc, 3)) {}

 private:
  void multiply(Pointers p, std::byte* own, const CudaStream& s) override {
    constexpr auto kAsIs = CUBLAS_OP_N, kTransposed = CUBLAS_OP_T;
    const OpDesc& d = desc();
    const int batch = dim(d.operands[0], 0);
    const bool has_bias = d.is<LinearForward>();
    if (has_bias || d.is<ProjectionForward>()) {  // y = x * weight' + bias
      const int in = dim(d.operands[0], 1), out = dim(d.operands.back(), 1);
      float* y = operand(p, has_bias ? 3 : 2);
      if (has_bias) device_code::broadcast_rows(operand(p, 2), y, batch, out, s.stream());
      product(s, batch, out, in, {kAsIs, operand(p, 0), in}, {kTransposed, operand(p, 1), in},
              has_bias ? kOne : kZero, y, out);
    } else if (d.is<LinearBackwardData>()) {  // dx = dy * weight
      const int out = dim(d.operands[0], 1), in = dim(d.operands[2], 1);
      product(s, batch, in, out, {kAsIs, operand(p, 0), out}, {kAsIs, operand(p, 1), in}, kZero,
              operand(p, 2), in);
    } else {  // dweight = dy' * x, or more by that
      const int in = dim(d.operands[0], 1), out = dim(d.operands[1], 1);
      float* dweight = operand(p, 2);
      float* product_of = d.adds(2) ? reinterpret_cast<float*>(own) : dweight;
      product(s, out, in, batch, {kTransposed, operand(p, 1), out}, {kAsIs, operand(p, 0), in},
              kZero, product_of, in);
      if (d.adds(2)) {
        device_code::add(dweight, product_of, 1, dweight, std::int64_t{out} * in, s.stream());
      }
      if (d.is<ProjectionBackwardWeights>()) return;
      float* dbias = operand(p, 3);
      float* sum = d.adds(3) ? reinterpret_cast<float*>(own + room_for(d, 2)) : dbias;
      device_code::sum_rows(operand(p, 1), sum, batch, out, s.stream());
      if (d.adds(3)) device_code::add(dbias, sum, 1, dbias, out, s.stream());
    }
  }
};

}  // namespace

std::unique_ptr<Kernel> make_linear(const OpDesc& desc, const KernelContext& context) {
  if (desc.is<LinearForward>() || desc.is<LinearBackwardData>() ||
      desc.is<LinearBackwardWeights>() || desc.is<ProjectionForward>() ||
      desc.is<ProjectionBackwardWeights>()) {
    return std::make_unique<LinearKernel>(desc, context.tf32);
  }
  return nullptr;
}

}  // namespace tidepool::nn::cuda_kernels_detail
