// Embeddings: our own kernels.
#include "nn/kernels/cuda/factories.h"
#include "nn/kernels/cuda/kernel_support.h"
#include "nn/kernels/cuda/launch.h"

namespace tidepool::nn::cuda_kernels_detail {
namespace {

class EmbeddingKernel final : public CudaKernel {
 public:
  explicit EmbeddingKernel(const OpDesc& desc) : CudaKernel(desc) { add_algorithm("own", 0); }

 private:
  void enqueue(int, Pointers p, std::byte*, const CudaStream& s) override {
    const bool forward = desc().is<EmbeddingForward>();
    const auto& operands = desc().operands;
    const TensorDesc &tokens = operands[0], &table = operands[forward ? 1 : 2];
    const device_code::Embedding shape{tokens.dims[0], tokens.dims[1], table.dims[0],
                                       operands[forward ? 2 : 3].dims[0], table.dims[1]};
    const auto* words = operand<std::int32_t>(p, 0);
    if (forward) {
      device_code::embedding_forward(shape, words, operand(p, 1), operand(p, 2), operand(p, 3),
                                     s.stream());
    } else {
      device_code::embedding_backward(shape, words, operand(p, 1), operand(p, 2), operand(p, 3),
                                      s.stream());
    }
  }
};

}  // namespace

std::unique_ptr<Kernel> make_embedding(const OpDesc& desc, const KernelContext& /*context*/) {
  if (desc.is<EmbeddingForward>() || desc.is<EmbeddingBackward>()) {
    return std::make_unique<EmbeddingKernel>(desc);
  }
  return nullptr;
}

}  // namespace tidepool::nn::cuda_kernels_detail
