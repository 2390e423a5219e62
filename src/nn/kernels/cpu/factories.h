// The CPU kernels: a factory for each family of ops, and the list of them in order of preference.
// Each returns null for ops it does not take.
#pragma once

#include "nn/kernel.h"
#include "nn/ops/op_desc.h"

namespace tidepool::nn::cpu {

std::unique_ptr<Kernel> make_convolution(const OpDesc& desc, const KernelContext& context);
std::unique_ptr<Kernel> make_channel_bias(const OpDesc& desc, const KernelContext& context);
std::unique_ptr<Kernel> make_concat(const OpDesc& desc, const KernelContext& context);
std::unique_ptr<Kernel> make_reorder(const OpDesc& desc, const KernelContext& context);
std::unique_ptr<Kernel> make_batch_norm(const OpDesc& desc, const KernelContext& context);
std::unique_ptr<Kernel> make_relu(const OpDesc& desc, const KernelContext& context);
std::unique_ptr<Kernel> make_gelu(const OpDesc& desc, const KernelContext& context);
std::unique_ptr<Kernel> make_add(const OpDesc& desc, const KernelContext& context);
std::unique_ptr<Kernel> make_pooling(const OpDesc& desc, const KernelContext& context);
std::unique_ptr<Kernel> make_dropout(const OpDesc& desc, const KernelContext& context);
std::unique_ptr<Kernel> make_linear(const OpDesc& desc, const KernelContext& context);
std::unique_ptr<Kernel> make_softmax_loss(const OpDesc& desc, const KernelContext& context);
std::unique_ptr<Kernel> make_count_correct(const OpDesc& desc, const KernelContext& context);
std::unique_ptr<Kernel> make_embedding(const OpDesc& desc, const KernelContext& context);
std::unique_ptr<Kernel> make_layer_norm(const OpDesc& desc, const KernelContext& context);
std::unique_ptr<Kernel> make_attention(const OpDesc& desc, const KernelContext& context);
std::unique_ptr<Kernel> make_lstm(const OpDesc& desc, const KernelContext& context);
std::unique_ptr<Kernel> make_upsample(const OpDesc& desc, const KernelContext& context);
std::unique_ptr<Kernel> make_k_means(const OpDesc& desc, const KernelContext& context);
std::unique_ptr<Kernel> make_sgd(const OpDesc& desc, const KernelContext& context);
std::unique_ptr<Kernel> make_adamw(const OpDesc& desc, const KernelContext& context);

/// Of ops that add to gradients.
std::unique_ptr<Kernel> make_adding_linear(const OpDesc& desc, const KernelContext& context);

inline constexpr KernelFactory kFactories[] = {
    make_convolution,   make_reorder,      make_batch_norm, make_relu,      make_gelu,
    make_add,           make_pooling,      make_dropout,    make_linear,    make_softmax_loss,
    make_count_correct, make_sgd,          make_adamw,      make_embedding, make_layer_norm,
    make_attention,     make_channel_bias, make_concat,     make_upsample,  make_lstm,
    make_k_means};

}  // namespace tidepool::nn::cpu
