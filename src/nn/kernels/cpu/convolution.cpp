#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "nn/kernels/cpu/dnnl_kernel.h"
#include "nn/kernels/cpu/factories.h"
#include "nn/kernels/cpu/team_size.h"

namespace tidepool::nn::cpu {
namespace {

using dnnl::algorithm;
using MemoryDesc = dnnl::memory::desc;

/// oneDNN counts groups in a dimension of its own. Blocks of depthwise filters are in the order of
/// as many filters of one input channel, and groups of whole blocks follow each other like blocks.
MemoryDesc weight_desc(const TensorDesc& weight, std::int64_t groups) {
  using Tag = dnnl::memory::format_tag;
  if (groups == 1) return dnnl_desc(weight);
  Tag tag = Tag::goihw;
  const bool of_8 = block_of(weight.layout) == 8;
  const Layout order = in_blocks(weight.layout, 16);
  if (order == Layout::Ohwi16o) tag = of_8 ? Tag::Goihw8g : Tag::Goihw16g;
  if (order == Layout::OIhw16i16o) tag = of_8 ? Tag::gOIhw8i8o : Tag::gOIhw16i16o;
  if (order == Layout::OIhw16o16i) tag = of_8 ? Tag::gOIhw8o8i : Tag::gOIhw16o16i;
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

dnnl::convolution_forward::primitive_desc forward_desc_convolution(const Convolution& c,
                                                                   algorithm algorithm) {
  return {{dnnl::prop_kind::forward_training, algorithm, c.x, c.weight, c.y, c.strides, c.padding,
           c.padding},
          dnnl_attributes(),
          dnnl_engine(),
          true};
}

/// The same in whatever layouts oneDNN likes best.
Convolution in_any_layout(Convolution c) {
  for (MemoryDesc* desc : {&c.x, &c.weight, &c.y}) {
    *desc = {desc->dims(), desc->data_type(), dnnl::memory::format_tag::any};
  }
  return c;
}

/// Backward primitives ask for a forward one; its layouts do not matter.
dnnl::convolution_forward::primitive_desc hint(const Convolution& c) {
  return forward_desc_convolution(in_any_layout(c), algorithm::convolution_direct);
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

/// Where oneDNN has nothing better for a shape in our layouts, it has plain loops, which take a
/// hundred times longer.
bool is_plain_loops(const dnnl::primitive_desc_base& desc) {
  return exists(desc) && std::string_view(desc.impl_info_str()).starts_with("ref");
}

/// An operand in our layout and in that of a primitive.
struct Reordered {
  int name = 0;  ///< DNNL_ARG_...
  int operand = 0;
  MemoryDesc ours, theirs;
};

/// The primitive between reorders through the workspace; nothing where one is missing. The last
/// operand is the one written.
template <class Primitive, class PrimitiveDesc>
std::optional<DnnlSequence> reordered_sequence(const PrimitiveDesc& desc,
                                               const std::array<Reordered, 3>& operands) {
  DnnlSequence sequence;
  std::vector<DnnlArgument> arguments;
  for (const Reordered& o : operands) {
    const bool same = o.ours == o.theirs;
    arguments.push_back(
        {o.name, o.theirs, same ? DnnlPlace{o.operand} : sequence.temporary(o.theirs)});
  }
  const auto reorder = [&](const MemoryDesc& from, const DnnlPlace& from_place,
                           const MemoryDesc& to, const DnnlPlace& to_place) {
    if (from == to) return true;
    const dnnl::reorder::primitive_desc reorder_desc(dnnl_engine(), from, dnnl_engine(), to,
                                                     dnnl_attributes(), true);
    if (!exists(reorder_desc)) return false;
    sequence.add(dnnl::reorder(reorder_desc), reorder_desc,
                 {{DNNL_ARG_FROM, from, from_place}, {DNNL_ARG_TO, to, to_place}});
    return true;
  };
  for (const std::size_t i : {0U, 1U}) {
    const Reordered& o = operands[i];
    if (!reorder(o.ours, {o.operand}, o.theirs, arguments[i].place)) return std::nullopt;
  }
  sequence.add(Primitive(desc), desc, arguments);
  const Reordered& written = operands[2];
  if (!reorder(written.theirs, arguments[2].place, written.ours, {written.operand})) {
    return std::nullopt;
  }
  return sequence;
}

/// In the place of plain loops. False where oneDNN has nothing better in other layouts either.
template <class Primitive, class PrimitiveDesc>
bool add_reordered(DnnlKernel& kernel, const PrimitiveDesc& desc,
                   const std::array<Reordered, 3>& operands) {
  if (!exists(desc) || is_plain_loops(desc)) return false;
  auto sequence = reordered_sequence<Primitive>(desc, operands);
  if (sequence) kernel.add("reordered", std::move(*sequence));
  return sequence.has_value();
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

std::unique_ptr<Kernel> make_forward_convolution(const OpDesc& desc, const KernelContext& context) {
  const Convolution c(desc, desc.operands[0], desc.operands[1], desc.operands[2]);
  const auto direct = forward_desc_convolution(c, algorithm::convolution_direct);
  if (!exists(direct)) return nullptr;
  auto kernel = std::make_unique<DnnlKernel>(context.threads);
  if (is_plain_loops(direct)) {
    const auto other = forward_desc_convolution(in_any_layout(c), algorithm::convolution_direct);
    if (add_reordered<dnnl::convolution_forward>(
            *kernel, other,
            {{{DNNL_ARG_SRC, 0, c.x, other.src_desc()},
              {DNNL_ARG_WEIGHTS, 1, c.weight, other.weights_desc()},
              {DNNL_ARG_DST, 2, c.y, other.dst_desc()}}})) {
      return kernel;
    }
  }
  kernel->add("direct", forward_sequence(c, direct));
  const auto winograd = forward_desc_convolution(c, algorithm::convolution_winograd);
  if (is_winograd(winograd)) kernel->add("winograd", forward_sequence(c, winograd));
  return kernel;
}

std::unique_ptr<Kernel> make_backward_weights_convolution(const OpDesc& desc,
                                                          const KernelContext& context) {
  const Convolution c(desc, desc.operands[0], desc.operands[2], desc.operands[1]);
  const auto direct = backward_weights_desc(c, algorithm::convolution_direct);
  if (!exists(direct)) return nullptr;
  auto kernel = std::make_unique<DnnlKernel>(context.threads);
  if (is_plain_loops(direct)) {
    const auto other = backward_weights_desc(in_any_layout(c), algorithm::convolution_direct);
    if (add_reordered<dnnl::convolution_backward_weights>(
            *kernel, other,
            {{{DNNL_ARG_SRC, 0, c.x, other.src_desc()},
              {DNNL_ARG_DIFF_DST, 1, c.y, other.diff_dst_desc()},
              {DNNL_ARG_DIFF_WEIGHTS, 2, c.weight, other.diff_weights_desc()}}})) {
      return kernel;
    }
  }
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

std::unique_ptr<Kernel> make_backward_data_convolution(const OpDesc& desc,
                                                       const KernelContext& context) {
  const Convolution c(desc, desc.operands[2], desc.operands[1], desc.operands[0]);
  const auto direct = backward_data_desc(c, algorithm::convolution_direct);
  if (!exists(direct)) return nullptr;
  auto kernel = std::make_unique<DnnlKernel>(context.threads);
  if (is_plain_loops(direct)) {
    const auto other = backward_data_desc(in_any_layout(c), algorithm::convolution_direct);
    if (add_reordered<dnnl::convolution_backward_data>(
            *kernel, other,
            {{{DNNL_ARG_DIFF_DST, 0, c.y, other.diff_dst_desc()},
              {DNNL_ARG_WEIGHTS, 1, c.weight, other.weights_desc()},
              {DNNL_ARG_DIFF_SRC, 2, c.x, other.diff_src_desc()}}})) {
      return kernel;
    }
  }
  kernel->add("direct", backward_data_sequence(c, direct));
  add_winograd_backward_data(*kernel, desc);
  return kernel;
}

}  // namespace

std::unique_ptr<Kernel> make_convolution(const OpDesc& desc, const KernelContext& context) {
  const TeamSize team(context.threads);
  if (desc.is<ConvForward>()) return make_forward_convolution(desc, context);
  if (desc.is<ConvBackwardData>()) return make_backward_data_convolution(desc, context);
  if (desc.is<ConvBackwardWeights>()) return make_backward_weights_convolution(desc, context);
  return nullptr;
}

}  // namespace tidepool::nn::cpu
