#include "nn/kernels/cpu/dnnl_kernel.h"
#include "nn/kernels/cpu/elementwise.h"
#include "nn/kernels/cpu/factories.h"
#include "nn/kernels/cpu/team_size.h"

namespace tidepool::nn::cpu {
namespace {

constexpr auto kGelu = dnnl::algorithm::eltwise_gelu_erf;

dnnl::eltwise_forward::primitive_desc forward_desc_gelu(const dnnl::memory::desc& x) {
  return {{dnnl::prop_kind::forward_training, kGelu, x}, dnnl_attributes(), dnnl_engine(), true};
}

std::unique_ptr<Kernel> make_forward_gelu(const OpDesc& desc, const KernelContext& context) {
  const dnnl::memory::desc x = dnnl_desc(desc.operands[0]);
  const auto primitive = forward_desc_gelu(x);
  if (!primitive.get(true)) return nullptr;
  return make_dnnl_kernel(context, dnnl::eltwise_forward(primitive), primitive,
                          {{DNNL_ARG_SRC, x, {0}}, {DNNL_ARG_DST, x, {1}}});
}

std::unique_ptr<Kernel> make_backward_gelu(const OpDesc& desc, const KernelContext& context) {
  const dnnl::memory::desc x = dnnl_desc(desc.operands[0]);
  const auto hint = forward_desc_gelu(x);
  if (!hint.get(true)) return nullptr;
  const dnnl::eltwise_backward::primitive_desc primitive({kGelu, x, x}, dnnl_attributes(),
                                                         dnnl_engine(), hint, true);
  if (!primitive.get(true)) return nullptr;
  return make_dnnl_kernel(context, dnnl::eltwise_backward(primitive), primitive,
                          {{DNNL_ARG_SRC, x, {0}},
                           {DNNL_ARG_DIFF_DST, x, {1}},
                           {DNNL_ARG_DIFF_SRC, x, {desc.in_place ? 1 : 2}}});
}

}  // namespace

std::unique_ptr<Kernel> make_gelu(const OpDesc& desc, const KernelContext& context) {
  const bool is_forward = desc.is<GeluForward>();
  if (!is_forward && !desc.is<GeluBackward>()) return nullptr;
  if (!operands_agree(desc)) return nullptr;
  const TeamSize team(context.threads);
  return is_forward ? make_forward_gelu(desc, context) : make_backward_gelu(desc, context);
}

}  // namespace tidepool::nn::cpu
