// Factories of the CPU kernels, one per symbol. Each returns null for ops it does not take.
#pragma once

#include "nn/kernel.h"

namespace tidepool::nn::cpu {

std::unique_ptr<Kernel> make_convolution(const OpDesc& desc);
std::unique_ptr<Kernel> make_reorder(const OpDesc& desc);
std::unique_ptr<Kernel> make_batch_norm(const OpDesc& desc);
std::unique_ptr<Kernel> make_relu(const OpDesc& desc);
std::unique_ptr<Kernel> make_add(const OpDesc& desc);
std::unique_ptr<Kernel> make_pooling(const OpDesc& desc);
std::unique_ptr<Kernel> make_dropout(const OpDesc& desc);
std::unique_ptr<Kernel> make_linear(const OpDesc& desc);
std::unique_ptr<Kernel> make_softmax_loss(const OpDesc& desc);
std::unique_ptr<Kernel> make_count_correct(const OpDesc& desc);
std::unique_ptr<Kernel> make_sgd(const OpDesc& desc);
std::unique_ptr<Kernel> make_adamw(const OpDesc& desc);

}  // namespace tidepool::nn::cpu
