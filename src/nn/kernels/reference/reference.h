// The reference kernels: one plain function per op kind, for any layout, written to be read. No
// workspace, one thread; sums are kept in double. They are the oracle of the kernel tests.
#pragma once

#include "nn/kernels/function_kernel.h"

namespace tidepool::nn::reference {

void conv_forward(const OpDesc& desc, Pointers pointers, std::byte* workspace);
void conv_backward_data(const OpDesc& desc, Pointers pointers, std::byte* workspace);
void conv_backward_weights(const OpDesc& desc, Pointers pointers, std::byte* workspace);
void reorder(const OpDesc& desc, Pointers pointers, std::byte* workspace);
void batch_norm_forward(const OpDesc& desc, Pointers pointers, std::byte* workspace);
void batch_norm_backward(const OpDesc& desc, Pointers pointers, std::byte* workspace);
void batch_norm_inference(const OpDesc& desc, Pointers pointers, std::byte* workspace);
void batch_norm_statistics(const OpDesc& desc, Pointers pointers, std::byte* workspace);
void relu_forward(const OpDesc& desc, Pointers pointers, std::byte* workspace);
void relu_backward(const OpDesc& desc, Pointers pointers, std::byte* workspace);
void add_forward(const OpDesc& desc, Pointers pointers, std::byte* workspace);
void max_pool_forward(const OpDesc& desc, Pointers pointers, std::byte* workspace);
void max_pool_backward(const OpDesc& desc, Pointers pointers, std::byte* workspace);
void avg_pool_forward(const OpDesc& desc, Pointers pointers, std::byte* workspace);
void avg_pool_backward(const OpDesc& desc, Pointers pointers, std::byte* workspace);
void dropout_forward(const OpDesc& desc, Pointers pointers, std::byte* workspace);
void dropout_backward(const OpDesc& desc, Pointers pointers, std::byte* workspace);
void linear_forward(const OpDesc& desc, Pointers pointers, std::byte* workspace);
void linear_backward_data(const OpDesc& desc, Pointers pointers, std::byte* workspace);
void linear_backward_weights(const OpDesc& desc, Pointers pointers, std::byte* workspace);
void softmax_loss_forward(const OpDesc& desc, Pointers pointers, std::byte* workspace);
void softmax_loss_backward(const OpDesc& desc, Pointers pointers, std::byte* workspace);
void count_correct(const OpDesc& desc, Pointers pointers, std::byte* workspace);
void sgd_update(const OpDesc& desc, Pointers pointers, std::byte* workspace);
void adamw_update(const OpDesc& desc, Pointers pointers, std::byte* workspace);

}  // namespace tidepool::nn::reference
