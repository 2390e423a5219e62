#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/at.h"
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

/// In our layout.
struct ConvolutionOperand {
  int name = 0;  ///< DNNL_ARG_...
  MemoryDesc ours;
};
/// In the op's order. The last is the one written.
using ConvolutionOperands = std::array<ConvolutionOperand, 3>;

template <class Primitive, class PrimitiveDesc>
void add_algorithm(DnnlKernel& kernel, std::string name, const PrimitiveDesc& desc,
                   const ConvolutionOperands& operands) {
  DnnlSequence sequence;
  std::vector<DnnlArgument> arguments;
  for (const ConvolutionOperand& o : operands) {
    arguments.push_back({o.name, o.ours, {static_cast<int>(arguments.size())}});
  }
  sequence.add(Primitive(desc), desc, std::move(arguments));
  kernel.add(std::move(name), std::move(sequence));
}

template <class Primitive, class PrimitiveDesc>
void add_winograd(DnnlKernel& kernel, const PrimitiveDesc& desc,
                  const ConvolutionOperands& operands) {
  if (is_winograd(desc)) add_algorithm<Primitive>(kernel, "winograd", desc, operands);
}

/// False where there is no such reorder.
bool add_reorder(DnnlSequence& sequence, const MemoryDesc& from, const DnnlPlace& from_place,
                 const MemoryDesc& to, const DnnlPlace& to_place) {
  const dnnl::reorder::primitive_desc desc(dnnl_engine(), from, dnnl_engine(), to,
                                           dnnl_attributes(), true);
  if (!exists(desc)) return false;
  sequence.add(dnnl::reorder(desc), desc,
               {{DNNL_ARG_FROM, from, from_place}, {DNNL_ARG_TO, to, to_place}});
  return true;
}

/// The primitive between reorders through the workspace; nothing where one is missing.
template <class Primitive, class PrimitiveDesc>
std::optional<DnnlSequence> reordered_sequence(const PrimitiveDesc& desc,
                                               const ConvolutionOperands& operands) {
  DnnlSequence sequence;
  std::vector<DnnlArgument> arguments;
  for (const ConvolutionOperand& o : operands) {
    const MemoryDesc theirs = desc.query_md(dnnl::query::exec_arg_md, o.name);
    const DnnlPlace place{static_cast<int>(arguments.size())};
    arguments.push_back({o.name, theirs, o.ours == theirs ? place : sequence.temporary(theirs)});
  }
  for (const int i : {0, 1}) {
    const auto& [name, theirs, place] = arguments[at(i)];
    const MemoryDesc& ours = operands[at(i)].ours;
    if (ours != theirs && !add_reorder(sequence, ours, {i}, theirs, place)) return std::nullopt;
  }
  sequence.add(Primitive(desc), desc, arguments);
  const auto& [name, theirs, place] = arguments[2];
  const MemoryDesc& ours = operands[2].ours;
  if (ours != theirs && !add_reorder(sequence, theirs, place, ours, {2})) return std::nullopt;
  return sequence;
}

/// In the place of plain loops. False where oneDNN has nothing better in other layouts either.
template <class Primitive, class PrimitiveDesc>
bool add_reordered(DnnlKernel& kernel, const PrimitiveDesc& desc,
                   const ConvolutionOperands& operands) {
  if (!exists(desc) || is_plain_loops(desc)) return false;
  auto sequence = reordered_sequence<Primitive>(desc, operands);
  if (sequence) kernel.add("reordered", std::move(*sequence));
  return sequence.has_value();
}

/// One direction of a convolution. `describe`: its forward_desc_convolution, backward_data_desc or
/// backward_weights_desc. `add_others`: algorithms beside the direct one.
template <class Primitive, class Describe, class AddOthers>
std::unique_ptr<Kernel> make_direction(const Convolution& c, const ConvolutionOperands& operands,
                                       int threads, Describe describe, AddOthers add_others) {
  const auto direct = describe(c, algorithm::convolution_direct);
  if (!exists(direct)) return nullptr;
  auto kernel = std::make_unique<DnnlKernel>(threads);
  if (is_plain_loops(direct) &&
      add_reordered<Primitive>(*kernel, describe(in_any_layout(c), algorithm::convolution_direct),
                               operands)) {
    return kernel;
  }
  add_algorithm<Primitive>(*kernel, "direct", direct, operands);
  add_others(*kernel);
  return kernel;
}

std::unique_ptr<Kernel> make_forward_convolution(const OpDesc& desc, int threads) {
  using Primitive = dnnl::convolution_forward;
  const Convolution c(desc, desc.operands[0], desc.operands[1], desc.operands[2]);
  const ConvolutionOperands operands{
      {{DNNL_ARG_SRC, c.x}, {DNNL_ARG_WEIGHTS, c.weight}, {DNNL_ARG_DST, c.y}}};
  return make_direction<Primitive>(
      c, operands, threads, forward_desc_convolution, [&](DnnlKernel& kernel) {
        add_winograd<Primitive>(
            kernel, forward_desc_convolution(c, algorithm::convolution_winograd), operands);
      });
}

std::unique_ptr<Kernel> make_backward_weights_convolution(const OpDesc& desc, int threads) {
  using Primitive = dnnl::convolution_backward_weights;
  const Convolution c(desc, desc.operands[0], desc.operands[2], desc.operands[1]);
  const ConvolutionOperands operands{
      {{DNNL_ARG_SRC, c.x}, {DNNL_ARG_DIFF_DST, c.y}, {DNNL_ARG_DIFF_WEIGHTS, c.weight}}};
  return make_direction<Primitive>(
      c, operands, threads, backward_weights_desc, [&](DnnlKernel& kernel) {
        add_winograd<Primitive>(kernel, backward_weights_desc(c, algorithm::convolution_winograd),
                                operands);
      });
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

  DnnlSequence sequence;
  const DnnlPlace weight = sequence.temporary(c.weight);
  if (!add_reorder(sequence, dnnl_desc(desc.operands[1]), {1}, c.weight, weight)) return;
  sequence.add(dnnl::convolution_backward_data(winograd), winograd,
               {{DNNL_ARG_DIFF_DST, c.y, {0}},
                {DNNL_ARG_WEIGHTS, c.weight, weight},
                {DNNL_ARG_DIFF_SRC, c.x, {2}}});
  kernel.add("winograd", std::move(sequence));
}

std::unique_ptr<Kernel> make_backward_data_convolution(const OpDesc& desc, int threads) {
  const Convolution c(desc, desc.operands[2], desc.operands[1], desc.operands[0]);
  const ConvolutionOperands operands{
      {{DNNL_ARG_DIFF_DST, c.y}, {DNNL_ARG_WEIGHTS, c.weight}, {DNNL_ARG_DIFF_SRC, c.x}}};
  return make_direction<dnnl::convolution_backward_data>(
      c, operands, threads, backward_data_desc,
      [&](DnnlKernel& kernel) { add_winograd_backward_data(kernel, desc); });
}

}  // namespace

std::unique_ptr<Kernel> make_convolution(const OpDesc& desc, const KernelContext& context) {
  const TeamSize team(context.threads);
  if (desc.is<ConvForward>()) return make_forward_convolution(desc, context.threads);
  if (desc.is<ConvBackwardData>()) return make_backward_data_convolution(desc, context.threads);
  if (desc.is<ConvBackwardWeights>())
    return make_backward_weights_convolution(desc, context.threads);
  return nullptr;
}

}  // namespace tidepool::nn::cpu
