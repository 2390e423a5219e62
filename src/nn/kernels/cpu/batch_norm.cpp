#include "nn/kernels/cpu/dnnl_kernel.h"
#include "nn/kernels/cpu/factories.h"
#include "nn/kernels/cpu/team_size.h"

namespace tidepool::nn::cpu {
namespace {

const auto kFlags = dnnl::normalization_flags::use_scale | dnnl::normalization_flags::use_shift;

/// A matrix is taken as 1x1 images with channels last, for which oneDNN has fast code.
dnnl::memory::desc image_desc(const TensorDesc& desc) {
  if (desc.dims.size() != 2) return dnnl_desc(desc);
  return {{desc.dims[0], desc.dims[1], 1, 1},
          dnnl::memory::data_type::f32,
          dnnl::memory::format_tag::nhwc};
}

dnnl::batch_normalization_forward::primitive_desc forward_desc_batch_norm(const OpDesc& desc) {
  return {{dnnl::prop_kind::forward_training, image_desc(desc.operands[0]),
           desc.get<BatchNormAttributes>().epsilon, kFlags},
          dnnl_attributes(),
          dnnl_engine(),
          true};
}

std::unique_ptr<Kernel> make_forward_batch_norm(const OpDesc& desc, const KernelContext& context) {
  const dnnl::memory::desc x = image_desc(desc.operands[0]);
  const dnnl::memory::desc channel = dnnl_desc(desc.operands[1]);
  const auto primitive = forward_desc_batch_norm(desc);
  if (!primitive.get(true)) return nullptr;
  return make_dnnl_kernel(context, dnnl::batch_normalization_forward(primitive), primitive,
                          {{DNNL_ARG_SRC, x, {0}},
                           {DNNL_ARG_SCALE, channel, {1}},
                           {DNNL_ARG_SHIFT, channel, {2}},
                           {DNNL_ARG_DST, x, {3}},
                           {DNNL_ARG_MEAN, channel, {4}},
                           {DNNL_ARG_VARIANCE, channel, {5}}});
}

std::unique_ptr<Kernel> make_inference(const OpDesc& desc, const KernelContext& context) {
  const dnnl::memory::desc x = image_desc(desc.operands[0]);
  const dnnl::memory::desc channel = dnnl_desc(desc.operands[1]);
  const dnnl::batch_normalization_forward::primitive_desc primitive(
      {dnnl::prop_kind::forward_inference, x, desc.get<BatchNormAttributes>().epsilon,
       kFlags | dnnl::normalization_flags::use_global_stats},
      dnnl_attributes(), dnnl_engine(), true);
  if (!primitive.get(true)) return nullptr;
  return make_dnnl_kernel(context, dnnl::batch_normalization_forward(primitive), primitive,
                          {{DNNL_ARG_SRC, x, {0}},
                           {DNNL_ARG_SCALE, channel, {1}},
                           {DNNL_ARG_SHIFT, channel, {2}},
                           {DNNL_ARG_MEAN, channel, {3}},
                           {DNNL_ARG_VARIANCE, channel, {4}},
                           {DNNL_ARG_DST, x, {5}}});
}

std::unique_ptr<Kernel> make_backward_batch_norm(const OpDesc& desc, const KernelContext& context) {
  const dnnl::memory::desc x = image_desc(desc.operands[0]);
  const dnnl::memory::desc channel = dnnl_desc(desc.operands[2]);
  const auto hint = forward_desc_batch_norm(desc);
  if (!hint.get(true)) return nullptr;
  const dnnl::batch_normalization_backward::primitive_desc primitive(
      {dnnl::prop_kind::backward, x, x, desc.get<BatchNormAttributes>().epsilon, kFlags},
      dnnl_attributes(), dnnl_engine(), hint, true);
  if (!primitive.get(true)) return nullptr;
  const int dx = desc.in_place ? 1 : 5;
  const int dscale = desc.in_place ? 5 : 6;
  return make_dnnl_kernel(context, dnnl::batch_normalization_backward(primitive), primitive,
                          {{DNNL_ARG_SRC, x, {0}},
                           {DNNL_ARG_DIFF_DST, x, {1}},
                           {DNNL_ARG_MEAN, channel, {2}},
                           {DNNL_ARG_VARIANCE, channel, {3}},
                           {DNNL_ARG_SCALE, channel, {4}},
                           {DNNL_ARG_SHIFT, channel, {4}},  // asked for, but not read
                           {DNNL_ARG_DIFF_SRC, x, {dx}},
                           {DNNL_ARG_DIFF_SCALE, channel, {dscale}},
                           {DNNL_ARG_DIFF_SHIFT, channel, {dscale + 1}}});
}

}  // namespace

std::unique_ptr<Kernel> make_batch_norm(const OpDesc& desc, const KernelContext& context) {
  const TeamSize team(context.threads);
  if (desc.is<BatchNormForward>()) return make_forward_batch_norm(desc, context);
  if (desc.is<BatchNormInference>()) return make_inference(desc, context);
  if (desc.is<BatchNormBackward>()) return make_backward_batch_norm(desc, context);
  return nullptr;
}

}  // namespace tidepool::nn::cpu
