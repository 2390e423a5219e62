#include "nn/kernels/cpu/cpu.h"
#include "nn/kernels/cpu/dnnl_kernel.h"

namespace tidepool::nn::cpu {
namespace {

constexpr auto kMax = dnnl::algorithm::pooling_max;

dnnl::pooling_forward::primitive_desc forward_desc(const OpDesc& desc, const TensorDesc& x,
                                                   const TensorDesc& y) {
  const dnnl::memory::dims window{desc.window, desc.window}, strides{desc.stride, desc.stride},
      padding{desc.padding, desc.padding};
  return {{dnnl::prop_kind::forward_training, kMax, dnnl_desc(x), dnnl_desc(y), strides, window,
           padding, padding},
          dnnl_attributes(),
          dnnl_engine(),
          true};
}

/// oneDNN's workspace must be the index operand: the same bytes as the reference kernel's.
bool is_usable(const dnnl::pooling_forward::primitive_desc& forward, const TensorDesc& index) {
  return forward.get(true) && forward.workspace_desc() == dnnl_desc(index);
}

std::unique_ptr<Kernel> make_forward(const OpDesc& desc) {
  const TensorDesc &x = desc.operands[0], &y = desc.operands[1], &index = desc.operands[2];
  const auto primitive = forward_desc(desc, x, y);
  if (!is_usable(primitive, index)) return nullptr;
  return make_dnnl_kernel(dnnl::pooling_forward(primitive), primitive,
                          {{DNNL_ARG_SRC, dnnl_desc(x), {0}},
                           {DNNL_ARG_DST, dnnl_desc(y), {1}},
                           {DNNL_ARG_WORKSPACE, dnnl_desc(index), {2}}});
}

std::unique_ptr<Kernel> make_backward(const OpDesc& desc) {
  const TensorDesc &dy = desc.operands[0], &index = desc.operands[1], &dx = desc.operands[2];
  const auto forward = forward_desc(desc, dx, dy);
  if (!is_usable(forward, index)) return nullptr;
  const dnnl::memory::dims window{desc.window, desc.window}, strides{desc.stride, desc.stride},
      padding{desc.padding, desc.padding};
  const dnnl::pooling_backward::primitive_desc primitive(
      {kMax, dnnl_desc(dx), dnnl_desc(dy), strides, window, padding, padding}, dnnl_attributes(),
      dnnl_engine(), forward, true);
  if (!primitive.get(true)) return nullptr;
  return make_dnnl_kernel(dnnl::pooling_backward(primitive), primitive,
                          {{DNNL_ARG_DIFF_DST, dnnl_desc(dy), {0}},
                           {DNNL_ARG_WORKSPACE, dnnl_desc(index), {1}},
                           {DNNL_ARG_DIFF_SRC, dnnl_desc(dx), {2}}});
}

}  // namespace

std::unique_ptr<Kernel> make_pooling(const OpDesc& desc) {
  switch (desc.kind) {
    case OpKind::max_pool_forward:
      return make_forward(desc);
    case OpKind::max_pool_backward:
      return make_backward(desc);
    default:
      return nullptr;
  }
}

}  // namespace tidepool::nn::cpu
