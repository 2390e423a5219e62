#include "nn/kernels/reference/reference.h"

namespace tidepool::nn {
namespace {

KernelFunction function_of(OpKind kind) {
  switch (kind) {
    case OpKind::conv_forward:
      return reference::conv_forward;
    case OpKind::conv_backward_data:
      return reference::conv_backward_data;
    case OpKind::conv_backward_weights:
      return reference::conv_backward_weights;
    case OpKind::reorder:
      return reference::reorder;
    case OpKind::batch_norm_forward:
      return reference::batch_norm_forward;
    case OpKind::batch_norm_backward:
      return reference::batch_norm_backward;
    case OpKind::batch_norm_inference:
      return reference::batch_norm_inference;
    case OpKind::batch_norm_statistics:
      return reference::batch_norm_statistics;
    case OpKind::relu_forward:
      return reference::relu_forward;
    case OpKind::relu_backward:
      return reference::relu_backward;
    case OpKind::add_forward:
      return reference::add_forward;
    case OpKind::max_pool_forward:
      return reference::max_pool_forward;
    case OpKind::max_pool_backward:
      return reference::max_pool_backward;
    case OpKind::avg_pool_forward:
      return reference::avg_pool_forward;
    case OpKind::avg_pool_backward:
      return reference::avg_pool_backward;
    case OpKind::dropout_forward:
      return reference::dropout_forward;
    case OpKind::dropout_backward:
      return reference::dropout_backward;
    case OpKind::linear_forward:
      return reference::linear_forward;
    case OpKind::linear_backward_data:
      return reference::linear_backward_data;
    case OpKind::linear_backward_weights:
      return reference::linear_backward_weights;
    case OpKind::softmax_loss_forward:
      return reference::softmax_loss_forward;
    case OpKind::softmax_loss_backward:
      return reference::softmax_loss_backward;
    case OpKind::count_correct:
      return reference::count_correct;
    case OpKind::sgd_update:
      return reference::sgd_update;
    case OpKind::adamw_update:
      return reference::adamw_update;
    case OpKind::feed_images:
    case OpKind::feed_labels:
    case OpKind::feed_control:
    case OpKind::collect_loss:
    case OpKind::collect_count:
      return nullptr;
  }
  return nullptr;
}

std::unique_ptr<Kernel> make_reference(const OpDesc& desc) {
  const KernelFunction function = function_of(desc.kind);
  if (function == nullptr) return nullptr;
  return std::make_unique<FunctionKernel>(desc, "reference", function, 0);
}

}  // namespace

const KernelList& reference_kernels() {
  static const KernelList list{"reference", false, {make_reference}};
  return list;
}

}  // namespace tidepool::nn
