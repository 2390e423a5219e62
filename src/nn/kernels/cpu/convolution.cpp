#include <string_view>
#include <utility>

#include "nn/kernels/cpu/dnnl_kernel.h"
#include "nn/kernels/cpu/factories.h"
#include "nn/kernels/cpu/team_size.h"

namespace tidepool::nn::cpu {
namespace {

using dnnl::algorithm;
using MemoryDesc = dnnl::memory::desc;

/// oneDNN counts groups in a dimension of its own. Blocks of 16 depthwise filters are in the order
/// of the 16 filters of one input channel, and groups of whole blocks follow each other like
/// blocks.
MemoryDesc weight_desc(const TensorDesc& weight, std::int64_t groups) {
  using Tag = dnnl::memory::format_tag;
  if (groups == 1) return dnnl_desc(weight);
  Tag tag = Tag::goihw;
  if (weight.layout == Layout::Ohwi16o) tag = Tag::Goihw16g;
  if (weight.layout == Layout::OIhw16i16o) tag = Tag::gOIhw16i16o;
  if (weight.layout == Layout::OIhw16o16i) tag = Tag::gOIhw16o16i;
  const auto& dims = weight.dims;
  return {{groups, dims[0] / groups, dims[1], dims[2], dims[3]}, dnnl::memory::data_type::f32, tag};
}

/// oneDNN's view of a convolution, whatever the direction.
struct Convolution {
  MemoryDesc x, weight, y;
  dnnl::memory::dims strides, padding;

  Convolution(const OpDesc& desc, const TensorDesc& x_in, const TensorDesc& weight_in,
              const TensorDesc& y_in)
      : x(dnnl_desc(x_in)),
        weight(weight_desc(weight_in, convolution_groups(x_in, weight_in))),
        y(dnnl_desc(y_in)),
        strides{desc.get<Window>().stride, desc.get<Window>().stride},
        padding{desc.get<Window>().padding.height, desc.get<Window>().padding.width} {}
};

dnnl::convolution_forward::primitive_desc forward_desc(const Convolution& c, algorithm algorithm) {
  return {{dnnl::prop_kind::forward_training, algorithm, c.x, c.weight, c.y, c.strides, c.padding,
           c.padding},
          dnnl_attributes(),
          dnnl_engine(),
          true};
}

/// Backward primitives ask for a forward one; its layouts do not matter.
dnnl::convolution_forward::primitive_desc hint(Convolution c) {
  for (MemoryDesc* desc : {&c.x, &c.weight, &c.y}) {
    *desc = {desc->dims(), desc->data_type(), dnnl::memory::format_tag::any};
  }
  return forward_desc(c, algorithm::convolution_direct);
}

dnnl::convolution_backward_data::primitive_desc backward_data_desc(const Convolution& c,
                                                                   algorithm algorithm) {
  return {{algorithm, c.x, c.weight, c.y, c.strides, c.padding, c.padding},
          dnnl_attributes(),
          dnnl_engine(),
          hint(c),
          true};
}

dnnl::convolution_backward_weights::primitive_desc backward_weights_desc(const Convolution& c,
                                                                         algorithm algorithm) {
  return {{algorithm, c.x, c.weight, c.y, c.strides, c.padding, c.padding},
          dnnl_attributes(),
          dnnl_engine(),
          hint(c),
          true};
}

bool exists(const dnnl::primitive_desc_base& desc) { return desc.get(true) != nullptr; }

/// oneDNN also answers with plain loops or with im2col, which are not what was asked for.
bool is_winograd(const dnnl::primitive_desc_base& desc) {
  return exists(desc) && std::string_view(desc.impl_info_str()).find("wino") != std::string::npos;
}

DnnlSequence forward_sequence(const Convolution& c,
                              const dnnl::convolution_forward::primitive_desc& desc) {
  DnnlSequence sequence;
  sequence.add(
      dnnl::convolution_forward(desc), desc,
      {{DNNL_ARG_SRC, c.x, {0}}, {DNNL_ARG_WEIGHTS, c.weight, {1}}, {DNNL_ARG_DST, c.y, {2}}});
  return sequence;
}

DnnlSequence backward_weights_sequence(
    const Convolution& c, const dnnl::convolution_backward_weights::primitive_desc& desc) {
  DnnlSequence sequence;
  sequence.add(dnnl::convolution_backward_weights(desc), desc,
               {{DNNL_ARG_SRC, c.x, {0}},
                {DNNL_ARG_DIFF_DST, c.y, {1}},
                {DNNL_ARG_DIFF_WEIGHTS, c.weight, {2}}});
  return sequence;
}

DnnlSequence backward_data_sequence(const Convolution& c,
                                    const dnnl::convolution_backward_data::primitive_desc& desc) {
  DnnlSequence sequence;
  sequence.add(dnnl::convolution_backward_data(desc), desc,
               {{DNNL_ARG_DIFF_DST, c.y, {0}},
                {DNNL_ARG_WEIGHTS, c.weight, {1}},
                {DNNL_ARG_DIFF_SRC, c.x, {2}}});
  return sequence;
}

std::unique_ptr<Kernel> make_forward(const OpDesc& desc, const KernelContext& context) {
  const Convolution c(desc, desc.operands[0], desc.operands[1], desc.operands[2]);
  const auto direct = forward_desc(c, algorithm::convolution_direct);
  if (!exists(direct)) return nullptr;
  auto kernel = std::make_unique<DnnlKernel>(context.threads);
  kernel->add("direct", forward_sequence(c, direct));
  const auto winograd = forward_desc(c, algorithm::convolution_winograd);
  if (is_winograd(winograd)) kernel->add("winograd", forward_sequence(c, winograd));
  return kernel;
}

std::unique_ptr<Kernel> make_backward_weights(const OpDesc& desc, const KernelContext& context) {
  const Convolution c(desc, desc.operands[0], desc.operands[2], desc.operands[1]);
  const auto direct = backward_weights_desc(c, algorithm::convolution_direct);
  if (!exists(direct)) return nullptr;
  auto kernel = std::make_unique<DnnlKernel>(context.threads);
  kernel->add("direct", backward_weights_sequence(c, direct));
  const auto winograd = backward_weights_desc(c, algorithm::convolution_winograd);
  if (is_winograd(winograd)) kernel->add("winograd", backward_weights_sequence(c, winograd));
  return kernel;
}

/// Winograd reads the forward layout of the weights: it takes them back to it in its workspace.
void add_winograd_backward_data(DnnlKernel& kernel, const OpDesc& desc) {
  TensorDesc forward_weight = desc.operands[1];
  if (forward_weight.layout != Layout::OIhw16o16i) return;
  if (convolution_groups(desc.operands[2], forward_weight) > 1) return;
  forward_weight.layout = Layout::OIhw16i16o;
  const Convolution c(desc, desc.operands[2], forward_weight, desc.operands[0]);
  const auto winograd = backward_data_desc(c, algorithm::convolution_winograd);
  if (!is_winograd(winograd)) return;

  const MemoryDesc given = dnnl_desc(desc.operands[1]);
  const dnnl::reorder::primitive_desc reorder(dnnl_engine(), given, dnnl_engine(), c.weight,
                                              dnnl_attributes(), true);
  if (!exists(reorder)) return;
  DnnlSequence sequence;
  const DnnlPlace weight = sequence.temporary(c.weight);
  sequence.add(dnnl::reorder(reorder), reorder,
               {{DNNL_ARG_FROM, given, {1}}, {DNNL_ARG_TO, c.weight, weight}});
  sequence.add(dnnl::convolution_backward_data(winograd), winograd,
               {{DNNL_ARG_DIFF_DST, c.y, {0}},
                {DNNL_ARG_WEIGHTS, c.weight, weight},
                {DNNL_ARG_DIFF_SRC, c.x, {2}}});
  kernel.add("winograd", std::move(sequence));
}

std::unique_ptr<Kernel> make_backward_data(const OpDesc& desc, const KernelContext& context) {
  const Convolution c(desc, desc.operands[2], desc.operands[1], desc.operands[0]);
  const auto direct = backward_data_desc(c, algorithm::convolution_direct);
  if (!exists(direct)) return nullptr;
  auto kernel = std::make_unique<DnnlKernel>(context.threads);
  kernel->add("direct", backward_data_sequence(c, direct));
  add_winograd_backward_data(*kernel, desc);
  return kernel;
}

}  // namespace

std::unique_ptr<Kernel> make_convolution(const OpDesc& desc, const KernelContext& context) {
  const TeamSize team(context.threads);
  if (desc.is<ConvForward>()) return make_forward(desc, context);
  if (desc.is<ConvBackwardData>()) return make_backward_data(desc, context);
  if (desc.is<ConvBackwardWeights>()) return make_backward_weights(desc, context);
  return nullptr;
}

}  // namespace tidepool::nn::cpu
