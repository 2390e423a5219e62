#include "nn/kernels/cpu/dnnl_kernel.h"

#include <cassert>
#include <utility>

#include "nn/kernels/cpu/team_size.h"

namespace tidepool::nn::cpu {
namespace {

using Tag = dnnl::memory::format_tag;

constexpr Bytes kWorkspaceAlignment = 64;

Tag tag_of(const TensorDesc& desc) {
  switch (desc.layout) {
    case Layout::plain: {
      constexpr Tag kPlain[] = {Tag::a, Tag::ab, Tag::abc, Tag::abcd};
      assert(!desc.dims.empty() && desc.dims.size() <= 4);
      return kPlain[desc.dims.size() - 1];
    }
    case Layout::nChw16c:
      return Tag::nChw16c;
    case Layout::OIhw16i16o:
      return Tag::OIhw16i16o;
    case Layout::OIhw16o16i:
      return Tag::OIhw16o16i;
    case Layout::Ohwi16o:
      return Tag::Ohwi16o;
    case Layout::nChw8c:
      return Tag::nChw8c;
    case Layout::OIhw8i8o:
      return Tag::OIhw8i8o;
    case Layout::OIhw8o8i:
      return Tag::OIhw8o8i;
    case Layout::Ohwi8o:
      return Tag::Ohwi8o;
  }
  return Tag::undef;
}

dnnl::memory::data_type type_of(ElementType type) {
  switch (type) {
    case ElementType::f32:
      return dnnl::memory::data_type::f32;
    case ElementType::u8:
      return dnnl::memory::data_type::u8;
    case ElementType::i32:
      return dnnl::memory::data_type::s32;
  }
  return dnnl::memory::data_type::undef;
}

}  // namespace

const dnnl::engine& dnnl_engine() {
  static const dnnl::engine instance(dnnl::engine::kind::cpu, 0);
  return instance;
}

const dnnl::stream& dnnl_stream() {
  static const dnnl::stream instance(dnnl_engine());
  return instance;
}

dnnl::memory::desc dnnl_desc(const TensorDesc& desc) {
  return {desc.dims, type_of(desc.type), tag_of(desc)};
}

const dnnl::primitive_attr& dnnl_attributes() {
  static const dnnl::primitive_attr instance = [] {
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    return attributes;
  }();
  return instance;
}

DnnlPlace DnnlSequence::temporary(const dnnl::memory::desc& desc) {
  const DnnlPlace place{-1, workspace_};
  workspace_ += align_up(static_cast<Bytes>(desc.get_size()), kWorkspaceAlignment);
  return place;
}

void DnnlSequence::add(const dnnl::primitive& primitive,
                       const dnnl::primitive_desc_base& primitive_desc,
                       std::vector<DnnlArgument> arguments) {
  const dnnl::memory::desc scratchpad = primitive_desc.scratchpad_desc();
  if (scratchpad.get_size() > 0) {
    arguments.push_back({DNNL_ARG_SCRATCHPAD, scratchpad, temporary(scratchpad)});
  }
  Step step{primitive, {}, {}, {}};
  for (const DnnlArgument& argument : arguments) {
    // NOLINTNEXTLINE(modernize-use-emplace): the macro is no pointer by itself
    step.memories.push_back({argument.desc, dnnl_engine(), DNNL_MEMORY_NONE});
    step.places.push_back(argument.place);
    step.arguments.push_back({argument.name, step.memories.back().get()});
  }
  steps_.push_back(std::move(step));
}

void DnnlSequence::run(std::span<std::byte* const> pointers, std::byte* workspace) {
  for (Step& step : steps_) {
    for (std::size_t i = 0; i < step.memories.size(); ++i) {
      const DnnlPlace& place = step.places[i];
      step.memories[i].set_data_handle(place.operand >= 0
                                           ? pointers[static_cast<std::size_t>(place.operand)]
                                           : workspace + place.workspace_offset);
    }
    dnnl::error::wrap_c_api(
        dnnl_primitive_execute(step.primitive.get(), dnnl_stream().get(),
                               static_cast<int>(step.arguments.size()), step.arguments.data()),
        "could not execute a oneDNN primitive");
  }
}

void DnnlKernel::add(std::string name, DnnlSequence sequence) {
  algorithms_.push_back({std::move(name), sequence.workspace()});
  sequences_.push_back(std::move(sequence));
}

void DnnlKernel::run(int algorithm, std::span<std::byte* const> pointers, std::byte* workspace,
                     NativeStream /*stream*/) {
  const TeamSize team(threads_);
  sequences_[static_cast<std::size_t>(algorithm)].run(pointers, workspace);
}

std::unique_ptr<Kernel> make_dnnl_kernel(const KernelContext& context,
                                         const dnnl::primitive& primitive,
                                         const dnnl::primitive_desc_base& primitive_desc,
                                         std::vector<DnnlArgument> arguments) {
  DnnlSequence sequence;
  sequence.add(primitive, primitive_desc, std::move(arguments));
  auto kernel = std::make_unique<DnnlKernel>(context.threads);
  kernel->add("onednn", std::move(sequence));
  return kernel;
}

}  // namespace tidepool::nn::cpu
