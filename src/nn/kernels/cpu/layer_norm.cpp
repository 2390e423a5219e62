#include "nn/kernels/cpu/dnnl_kernel.h"
#include "nn/kernels/cpu/factories.h"
#include "nn/kernels/cpu/team_size.h"

namespace tidepool::nn::cpu {
namespace {

const auto kScaleAndShift =
    dnnl::normalization_flags::use_scale | dnnl::normalization_flags::use_shift;

/// `row`: what mean and variance are.
dnnl::layer_normalization_forward::primitive_desc forward_desc_layer_norm(
    const OpDesc& desc, const dnnl::memory::desc& x, const dnnl::memory::desc& row) {
  return {{dnnl::prop_kind::forward_training, x, row, desc.get<LayerNormAttributes>().epsilon,
           kScaleAndShift},
          dnnl_attributes(),
          dnnl_engine(),
          true};
}

std::unique_ptr<Kernel> make_forward_layer_norm(const OpDesc& desc, const KernelContext& context) {
  const dnnl::memory::desc x = dnnl_desc(desc.operands[0]), row = dnnl_desc(desc.operands[4]);
  const dnnl::memory::desc column = dnnl_desc(desc.operands[1]);
  const auto primitive = forward_desc_layer_norm(desc, x, row);
  if (!primitive.get(true)) return nullptr;
  return make_dnnl_kernel(context, dnnl::layer_normalization_forward(primitive), primitive,
                          {{DNNL_ARG_SRC, x, {0}},
                           {DNNL_ARG_SCALE, column, {1}},
                           {DNNL_ARG_SHIFT, column, {2}},
                           {DNNL_ARG_DST, x, {3}},
                           {DNNL_ARG_MEAN, row, {4}},
                           {DNNL_ARG_VARIANCE, row, {5}}});
}

std::unique_ptr<Kernel> make_backward_layer_norm(const OpDesc& desc, const KernelContext& context) {
  const dnnl::memory::desc x = dnnl_desc(desc.operands[0]), row = dnnl_desc(desc.operands[2]);
  const dnnl::memory::desc column = dnnl_desc(desc.operands[4]);
  const auto hint = forward_desc_layer_norm(desc, x, row);
  if (!hint.get(true)) return nullptr;
  const dnnl::layer_normalization_backward::primitive_desc primitive(
      {dnnl::prop_kind::backward, x, x, row, desc.get<LayerNormAttributes>().epsilon,
       kScaleAndShift},
      dnnl_attributes(), dnnl_engine(), hint, true);
  if (!primitive.get(true)) return nullptr;
  const int dx = desc.in_place ? 1 : 5;
  const int dscale = desc.in_place ? 5 : 6;
  return make_dnnl_kernel(context, dnnl::layer_normalization_backward(primitive), primitive,
                          {{DNNL_ARG_SRC, x, {0}},
                           {DNNL_ARG_DIFF_DST, x, {1}},
                           {DNNL_ARG_MEAN, row, {2}},
                           {DNNL_ARG_VARIANCE, row, {3}},
                           {DNNL_ARG_SCALE, column, {4}},
                           {DNNL_ARG_SHIFT, column, {4}},  // asked for, but not read
                           {DNNL_ARG_DIFF_SRC, x, {dx}},
                           {DNNL_ARG_DIFF_SCALE, column, {dscale}},
                           {DNNL_ARG_DIFF_SHIFT, column, {dscale + 1}}});
}

}  // namespace

std::unique_ptr<Kernel> make_layer_norm(const OpDesc& desc, const KernelContext& context) {
  const TeamSize team(context.threads);
  if (desc.is<LayerNormForward>()) return make_forward_layer_norm(desc, context);
  if (desc.is<LayerNormBackward>()) return make_backward_layer_norm(desc, context);
  return nullptr;
}

}  // namespace tidepool::nn::cpu
