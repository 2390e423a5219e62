#include <utility>
#include <vector>

#include "nn/kernels/cpu/dnnl_kernel.h"
#include "nn/kernels/cpu/factories.h"
#include "nn/kernels/cpu/team_size.h"

namespace tidepool::nn::cpu {
namespace {

dnnl::inner_product_forward::primitive_desc forward_desc_linear(const TensorDesc& x,
                                                                const TensorDesc& weight,
                                                                const TensorDesc& y,
                                                                bool has_bias) {
  using Desc = dnnl::inner_product_forward::desc;
  constexpr auto kTraining = dnnl::prop_kind::forward_training;
  const TensorDesc bias{{weight.dims[0]}};
  const Desc with =
      has_bias ? Desc(kTraining, dnnl_desc(x), dnnl_desc(weight), dnnl_desc(bias), dnnl_desc(y))
               : Desc(kTraining, dnnl_desc(x), dnnl_desc(weight), dnnl_desc(y));
  return {with, dnnl_attributes(), dnnl_engine(), true};
}

std::unique_ptr<Kernel> make_forward_linear(const OpDesc& desc, const KernelContext& context) {
  const bool has_bias = desc.is<LinearForward>();
  const TensorDesc &x = desc.operands[0], &weight = desc.operands[1], &y = desc.operands.back();
  const auto primitive = forward_desc_linear(x, weight, y, has_bias);
  if (!primitive.get(true)) return nullptr;
  std::vector<DnnlArgument> arguments = {{DNNL_ARG_SRC, dnnl_desc(x), {0}},
                                         {DNNL_ARG_WEIGHTS, dnnl_desc(weight), {1}},
                                         {DNNL_ARG_DST, dnnl_desc(y), {has_bias ? 3 : 2}}};
  if (has_bias) arguments.push_back({DNNL_ARG_BIAS, dnnl_desc(desc.operands[2]), {2}});
  return make_dnnl_kernel(context, dnnl::inner_product_forward(primitive), primitive,
                          std::move(arguments));
}

std::unique_ptr<Kernel> make_backward_data_linear(const OpDesc& desc,
                                                  const KernelContext& context) {
  const TensorDesc &dy = desc.operands[0], &weight = desc.operands[1], &dx = desc.operands[2];
  const auto hint = forward_desc_linear(dx, weight, dy, true);
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

std::unique_ptr<Kernel> make_backward_weights_linear(const OpDesc& desc,
                                                     const KernelContext& context) {
  using Desc = dnnl::inner_product_backward_weights::desc;
  const bool has_bias = desc.is<LinearBackwardWeights>();
  const TensorDesc &x = desc.operands[0], &dy = desc.operands[1], &dweight = desc.operands[2];
  const TensorDesc dbias{{dweight.dims[0]}};
  const auto hint = forward_desc_linear(x, dweight, dy, has_bias);
  if (!hint.get(true)) return nullptr;
  const Desc with = has_bias
                        ? Desc(dnnl_desc(x), dnnl_desc(dweight), dnnl_desc(dbias), dnnl_desc(dy))
                        : Desc(dnnl_desc(x), dnnl_desc(dweight), dnnl_desc(dy));
  const dnnl::inner_product_backward_weights::primitive_desc primitive(with, dnnl_attributes(),
                                                                       dnnl_engine(), hint, true);
  if (!primitive.get(true)) return nullptr;
  std::vector<DnnlArgument> arguments = {{DNNL_ARG_SRC, dnnl_desc(x), {0}},
                                         {DNNL_ARG_DIFF_DST, dnnl_desc(dy), {1}},
                                         {DNNL_ARG_DIFF_WEIGHTS, dnnl_desc(dweight), {2}}};
  if (has_bias) arguments.push_back({DNNL_ARG_DIFF_BIAS, dnnl_desc(dbias), {3}});
  return make_dnnl_kernel(context, dnnl::inner_product_backward_weights(primitive), primitive,
                          std::move(arguments));
}

}  // namespace

std::unique_ptr<Kernel> make_linear(const OpDesc& desc, const KernelContext& context) {
  const TeamSize team(context.threads);
  if (desc.is<LinearForward>() || desc.is<ProjectionForward>())
    return make_forward_linear(desc, context);
  if (desc.is<LinearBackwardData>()) return make_backward_data_linear(desc, context);
  if (desc.is<LinearBackwardWeights>() || desc.is<ProjectionBackwardWeights>()) {
    return make_backward_weights_linear(desc, context);
  }
  return nullptr;
}

}  // namespace tidepool::nn::cpu
