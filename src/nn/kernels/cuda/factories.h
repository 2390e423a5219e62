// The CUDA kernels: a factory for each family of ops, and the list of them. Each returns null for
// ops it does not take.
#pragma once

#include "nn/kernel.h"
#include "nn/ops/op_desc.h"

namespace tidepool::nn::cuda_kernels_detail {

std::unique_ptr<Kernel> make_convolution(const OpDesc& desc, const KernelContext& context);
/// Backward weights by cuDNN; null where it has no algorithm.
std::unique_ptr<Kernel> make_adding_convolution(const OpDesc& desc,
                                                const KernelContext& context);
/// Also of ops that add to gradients.
std::unique_ptr<Kernel> make_linear(const OpDesc& desc, const KernelContext& context);
std::unique_ptr<Kernel> make_batch_norm(const OpDesc& desc, const KernelContext& context);
std::unique_ptr<Kernel> make_pooling(const OpDesc& desc, const KernelContext& context);
std::unique_ptr<Kernel> make_loss(const OpDesc& desc, const KernelContext& context);
std::unique_ptr<Kernel> make_embedding(const OpDesc& desc, const KernelContext& context);
std::unique_ptr<Kernel> make_layer_norm(const OpDesc& desc, const KernelContext& context);
std::unique_ptr<Kernel> make_attention(const OpDesc& desc, const KernelContext& context);
std::unique_ptr<Kernel> make_lstm(const OpDesc& desc, const KernelContext& context);
std::unique_ptr<Kernel> make_upsample(const OpDesc& desc, const KernelContext& context);
std::unique_ptr<Kernel> make_k_means(const OpDesc& desc, const KernelContext& context);
std::unique_ptr<Kernel> make_elementwise(const OpDesc& desc, const KernelContext& context);

inline constexpr KernelFactory kFactories[] = {
    make_convolution, make_linear,     make_batch_norm, make_pooling,  make_loss, make_elementwise,
    make_embedding,   make_layer_norm, make_attention,  make_upsample, make_lstm, make_k_means};

}  // namespace tidepool::nn::cuda_kernels_detail
