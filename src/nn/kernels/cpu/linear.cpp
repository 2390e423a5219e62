#include "nn/kernels/cpu/dnnl_kernel.h"
#include "nn/kernels/cpu/factories.h"
#include "nn/kernels/cpu/team_size.h"

namespace tidepool::nn::cpu {
namespace {

dnnl::inner_product_forward::primitive_desc forward_desc(const TensorDesc& x,
                                                         const TensorDesc& weight,
                                                         const TensorDesc& y) {
  const TensorDesc bias{{weight.dims[0]}};
  return {{dnnl::prop_kind::forward_training, dnnl_desc(x), dnnl_desc(weight), dnnl_desc(bias),
           dnnl_desc(y)},
          dnnl_attributes(),
          dnnl_engine(),
          true};
}

std::unique_ptr<Kernel> make_forward(const OpDesc& desc, const KernelContext& context) {
  const TensorDesc &x = desc.operands[0], &weight = desc.operands[1], &y = desc.operands[3];
  const auto primitive = forward_desc(x, weight, y);
  if (!primitive.get(true)) return nullptr;
  return make_dnnl_kernel(context, dnnl::inner_product_forward(primitive), primitive,
                          {{DNNL_ARG_SRC, dnnl_desc(x), {0}},
                           {DNNL_ARG_WEIGHTS, dnnl_desc(weight), {1}},
                           {DNNL_ARG_BIAS, dnnl_desc(desc.operands[2]), {2}},
                           {DNNL_ARG_DST, dnnl_desc(y), {3}}});
}

std::unique_ptr<Kernel> make_backward_data(const OpDesc& desc, const KernelContext& context) {
  const TensorDesc &dy = desc.operands[0], &weight = desc.operands[1], &dx = desc.operands[2];
  const auto hint = forward_desc(dx, weight, dy);
  if (!hint.get(true)) return nullptr;
  const dnnl::inner_product_backward_data::primitive_desc primitive(
      {dnnl_desc(dx), dnnl_desc(weight), dnnl_desc(dy)}, dnnl_attributes(), dnnl_engine(), hint,
      true);
  if (!primitive.get(true)) return nullptr;
  return make_dnnl_kernel(context, dnnl::inner_product_backward_data(primitive), primitive,
                          {{DNNL_ARG_DIFF_DST, dnnl_desc(dy), {0}},
                           {DNNL_ARG_WEIGHTS, dnnl_desc(weight), {1}},
                           {DNNL_ARG_DIFF_SRC, dnnl_desc(dx), {2}}});
}

std::unique_ptr<Kernel> make_backward_weights(const OpDesc& desc, const KernelContext& context) {
  const TensorDesc &x = desc.operands[0], &dy = desc.operands[1], &dweight = desc.operands[2],
                   &dbias = desc.operands[3];
  const auto hint = forward_desc(x, dweight, dy);
  if (!hint.get(true)) return nullptr;
  const dnnl::inner_product_backward_weights::primitive_desc primitive(
      {dnnl_desc(x), dnnl_desc(dweight), dnnl_desc(dbias), dnnl_desc(dy)}, dnnl_attributes(),
      dnnl_engine(), hint, true);
  if (!primitive.get(true)) return nullptr;
  return make_dnnl_kernel(context, dnnl::inner_product_backward_weights(primitive), primitive,
                          {{DNNL_ARG_SRC, dnnl_desc(x), {0}},
                           {DNNL_ARG_DIFF_DST, dnnl_desc(dy), {1}},
                           {DNNL_ARG_DIFF_WEIGHTS, dnnl_desc(dweight), {2}},
                           {DNNL_ARG_DIFF_BIAS, dnnl_desc(dbias), {3}}});
}

}  // namespace

std::unique_ptr<Kernel> make_linear(const OpDesc& desc, const KernelContext& context) {
  const TeamSize team(context.threads);
  if (desc.is<LinearForward>()) return make_forward(desc, context);
  if (desc.is<LinearBackwardData>()) return make_backward_data(desc, context);
  if (desc.is<LinearBackwardWeights>()) return make_backward_weights(desc, context);
  return nullptr;
}

}  // namespace tidepool::nn::cpu
