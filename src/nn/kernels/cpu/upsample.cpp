#include "nn/kernels/cpu/dnnl_kernel.h"
#include "nn/kernels/cpu/factories.h"
#include "nn/kernels/cpu/team_size.h"

namespace tidepool::nn::cpu {
namespace {

dnnl::resampling_forward::primitive_desc forward_desc_upsample(const UpsampleAttributes& op,
                                                               const dnnl::memory::desc& x,
                                                               const dnnl::memory::desc& y) {
  const auto mode =
      op.bilinear ? dnnl::algorithm::resampling_linear : dnnl::algorithm::resampling_nearest;
  return {{dnnl::prop_kind::forward_training, mode, x, y}, dnnl_attributes(), dnnl_engine(), true};
}

std::unique_ptr<Kernel> make_upsample_forward(const OpDesc& desc, const KernelContext& context) {
  const auto x = dnnl_desc(desc.operands[0]), y = dnnl_desc(desc.operands[1]);
  const auto primitive = forward_desc_upsample(desc.get<UpsampleAttributes>(), x, y);
  if (!primitive.get(true)) return nullptr;
  return make_dnnl_kernel(context, dnnl::resampling_forward(primitive), primitive,
                          {{DNNL_ARG_SRC, x, {0}}, {DNNL_ARG_DST, y, {1}}});
}

std::unique_ptr<Kernel> make_upsample_backward(const OpDesc& desc, const KernelContext& context) {
  const auto y = dnnl_desc(desc.operands[0]), x = dnnl_desc(desc.operands[1]);
  const auto& op = desc.get<UpsampleAttributes>();
  const auto forward = forward_desc_upsample(op, x, y);
  if (!forward.get(true)) return nullptr;
  const auto mode =
      op.bilinear ? dnnl::algorithm::resampling_linear : dnnl::algorithm::resampling_nearest;
  const dnnl::resampling_backward::primitive_desc primitive({mode, x, y}, dnnl_attributes(),
                                                            dnnl_engine(), forward, true);
  if (!primitive.get(true)) return nullptr;
  return make_dnnl_kernel(context, dnnl::resampling_backward(primitive), primitive,
                          {{DNNL_ARG_DIFF_DST, y, {0}}, {DNNL_ARG_DIFF_SRC, x, {1}}});
}

}  // namespace

std::unique_ptr<Kernel> make_upsample(const OpDesc& desc, const KernelContext& context) {
  const TeamSize team(context.threads);
  if (desc.is<UpsampleForward>()) return make_upsample_forward(desc, context);
  if (desc.is<UpsampleBackward>()) return make_upsample_backward(desc, context);
  return nullptr;
}

}  // namespace tidepool::nn::cpu
