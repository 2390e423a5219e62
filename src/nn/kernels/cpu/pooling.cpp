#include "nn/kernels/cpu/dnnl_kernel.h"
#include "nn/kernels/cpu/factories.h"
#include "nn/kernels/cpu/team_size.h"

namespace tidepool::nn::cpu {
namespace {

using dnnl::algorithm;

/// oneDNN's view of a pooling op, whatever the direction.
struct Pooling {
  dnnl::memory::desc x, y;
  dnnl::memory::dims window, strides, padding;

  Pooling(const OpDesc& desc, const TensorDesc& x_in, const TensorDesc& y_in)
      : x(dnnl_desc(x_in)),
        y(dnnl_desc(y_in)),
        window{desc.get<Window>().window.height, desc.get<Window>().window.width},
        strides{desc.get<Window>().stride, desc.get<Window>().stride},
        padding{desc.get<Window>().padding.height, desc.get<Window>().padding.width} {}
};

dnnl::pooling_forward::primitive_desc forward_desc_pooling(const Pooling& p, algorithm algorithm) {
  return {{dnnl::prop_kind::forward_training, algorithm, p.x, p.y, p.strides, p.window, p.padding,
           p.padding},
          dnnl_attributes(),
          dnnl_engine(),
          true};
}

dnnl::pooling_backward::primitive_desc backward_desc(
    const Pooling& p, algorithm algorithm, const dnnl::pooling_forward::primitive_desc& forward) {
  return {{algorithm, p.x, p.y, p.strides, p.window, p.padding, p.padding},
          dnnl_attributes(),
          dnnl_engine(),
          forward,
          true};
}

/// oneDNN's workspace must be the index operand: the same bytes as the reference kernel's.
bool is_usable(const dnnl::pooling_forward::primitive_desc& forward, const TensorDesc& index) {
  return forward.get(true) && forward.workspace_desc() == dnnl_desc(index);
}

std::unique_ptr<Kernel> make_max_forward(const OpDesc& desc, const KernelContext& context) {
  const Pooling p(desc, desc.operands[0], desc.operands[1]);
  const TensorDesc& index = desc.operands[2];
  const auto primitive = forward_desc_pooling(p, algorithm::pooling_max);
  if (!is_usable(primitive, index)) return nullptr;
  return make_dnnl_kernel(context, dnnl::pooling_forward(primitive), primitive,
                          {{DNNL_ARG_SRC, p.x, {0}},
                           {DNNL_ARG_DST, p.y, {1}},
                           {DNNL_ARG_WORKSPACE, dnnl_desc(index), {2}}});
}

std::unique_ptr<Kernel> make_max_backward(const OpDesc& desc, const KernelContext& context) {
  const Pooling p(desc, desc.operands[2], desc.operands[0]);
  const TensorDesc& index = desc.operands[1];
  const auto forward = forward_desc_pooling(p, algorithm::pooling_max);
  if (!is_usable(forward, index)) return nullptr;
  const auto primitive = backward_desc(p, algorithm::pooling_max, forward);
  if (!primitive.get(true)) return nullptr;
  return make_dnnl_kernel(context, dnnl::pooling_backward(primitive), primitive,
                          {{DNNL_ARG_DIFF_DST, p.y, {0}},
                           {DNNL_ARG_WORKSPACE, dnnl_desc(index), {1}},
                           {DNNL_ARG_DIFF_SRC, p.x, {2}}});
}

constexpr auto kMean = algorithm::pooling_avg_exclude_padding;

std::unique_ptr<Kernel> make_avg_forward(const OpDesc& desc, const KernelContext& context) {
  const Pooling p(desc, desc.operands[0], desc.operands[1]);
  const auto primitive = forward_desc_pooling(p, kMean);
  if (!primitive.get(true)) return nullptr;
  return make_dnnl_kernel(context, dnnl::pooling_forward(primitive), primitive,
                          {{DNNL_ARG_SRC, p.x, {0}}, {DNNL_ARG_DST, p.y, {1}}});
}

std::unique_ptr<Kernel> make_avg_backward(const OpDesc& desc, const KernelContext& context) {
  const Pooling p(desc, desc.operands[1], desc.operands[0]);
  const auto forward = forward_desc_pooling(p, kMean);
  if (!forward.get(true)) return nullptr;
  const auto primitive = backward_desc(p, kMean, forward);
  if (!primitive.get(true)) return nullptr;
  return make_dnnl_kernel(context, dnnl::pooling_backward(primitive), primitive,
                          {{DNNL_ARG_DIFF_DST, p.y, {0}}, {DNNL_ARG_DIFF_SRC, p.x, {1}}});
}

}  // namespace

std::unique_ptr<Kernel> make_pooling(const OpDesc& desc, const KernelContext& context) {
  const TeamSize team(context.threads);
  if (desc.is<MaxPoolForward>()) return make_max_forward(desc, context);
  if (desc.is<MaxPoolBackward>()) return make_max_backward(desc, context);
  if (desc.is<AvgPoolForward>()) return make_avg_forward(desc, context);
  if (desc.is<AvgPoolBackward>()) return make_avg_backward(desc, context);
  return nullptr;
}

}  // namespace tidepool::nn::cpu
