// Products by oneDNN's matmul, which takes heads where they lie; softmax by oneDNN where no mask
// leaves a triangle out.
#include <algorithm>
#include <cmath>

#include "nn/kernels/cpu/dnnl_kernel.h"
#include "nn/kernels/cpu/factories.h"
#include "nn/kernels/cpu/parallel.h"
#include "nn/kernels/cpu/team_size.h"
#include "nn/kernels/function_kernel.h"

namespace tidepool::nn::cpu {
namespace {

using Dims = dnnl::memory::dims;

/// What an op sees as samples x heads x rows x columns.
class Heads {
 public:
  Heads(const TensorDesc& square, std::int64_t width)
      : samples_(square.dims[0]),
        heads_(square.dims[1]),
        tokens_(square.dims[2]),
        columns_(width / square.dims[1]) {}

  /// samples x tokens x width, by heads.
  [[nodiscard]] dnnl::memory::desc rows(bool transposed = false) const {
    return matrix(tokens_, columns_, heads_ * columns_, columns_, heads_ * columns_ * tokens_,
                  transposed);
  }
  [[nodiscard]] dnnl::memory::desc square(bool transposed = false) const {
    const std::int64_t area = tokens_ * tokens_;
    return matrix(tokens_, tokens_, tokens_, area, heads_ * area, transposed);
  }

 private:
  [[nodiscard]] dnnl::memory::desc matrix(std::int64_t rows, std::int64_t columns, std::int64_t row,
                                          std::int64_t head, std::int64_t sample,
                                          bool transposed) const {
    constexpr auto kFloat = dnnl::memory::data_type::f32;
    if (transposed) {
      return {Dims{samples_, heads_, columns, rows}, kFloat, Dims{sample, head, 1, row}};
    }
    return {Dims{samples_, heads_, rows, columns}, kFloat, Dims{sample, head, row, 1}};
  }

  std::int64_t samples_, heads_, tokens_, columns_;
};

std::unique_ptr<Kernel> make_product(const OpDesc& desc, const KernelContext& context) {
  const bool scores = desc.is<AttentionScores>();
  const TensorDesc& square = desc.operands[scores ? 2 : 0];
  const Heads heads(square, desc.operands[1].dims[2]);
  const dnnl::memory::desc left =
      scores ? heads.rows() : heads.square(desc.is<AttentionMixTransposed>());
  const dnnl::memory::desc right = heads.rows(scores);
  const dnnl::memory::desc to = scores ? heads.square() : heads.rows();
  dnnl::primitive_attr attributes;  // of its own: copies share their content
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const float scale = desc.get<AttentionScale>().scale;
  if (scale != 1) attributes.set_output_scales(0, {scale});
  const dnnl::matmul::primitive_desc primitive({left, right, to}, attributes, dnnl_engine(), true);
  if (!primitive.get(true)) return nullptr;
  return make_dnnl_kernel(
      context, dnnl::matmul(primitive), primitive,
      {{DNNL_ARG_SRC, left, {0}}, {DNNL_ARG_WEIGHTS, right, {1}}, {DNNL_ARG_DST, to, {2}}});
}

/// Probabilities of the first `seen` of a row; the others are 0. `p` may be `s`.
void softmax_row(const float* s, float* p, std::int64_t seen, std::int64_t columns) {
  const float largest = *std::max_element(s, s + seen);
  double sum = 0;
  for (std::int64_t j = 0; j < seen; ++j) {
    p[j] = std::exp(s[j] - largest);
    sum += static_cast<double>(p[j]);
  }
  const auto inverse = static_cast<float>(1 / sum);
  for (std::int64_t j = 0; j < seen; ++j) p[j] *= inverse;
  std::fill(p + seen, p + columns, 0.0F);
}

void causal_softmax(const OpDesc& desc, Pointers pointers, std::byte*,
                    const KernelContext& context) {
  const auto* s = reinterpret_cast<const float*>(pointers[0]);
  auto* p = reinterpret_cast<float*>(pointers[desc.in_place ? 0 : 1]);
  const std::int64_t tokens = desc.operands[0].dims[3];
  // By whole matrices: their first rows are short, their last ones long.
  const std::int64_t rows = desc.operands[0].elements() / tokens;
  parallel_ranges(context.threads, rows, tokens, [&](auto begin, auto end) {
    for (std::int64_t row = begin; row < end; ++row) {
      softmax_row(s + row * tokens, p + row * tokens, row % tokens + 1, tokens);
    }
  });
}

constexpr int kLastAxis = 3;

std::unique_ptr<Kernel> make_softmax(const OpDesc& desc, const KernelContext& context) {
  if (desc.get<AttentionSoftmaxForward>().causal) {
    return std::make_unique<FunctionKernel>(desc, context, "loop", causal_softmax);
  }
  const dnnl::memory::desc square = dnnl_desc(desc.operands[0]);
  const dnnl::softmax_forward::primitive_desc primitive(
      {dnnl::prop_kind::forward_training, square, kLastAxis}, dnnl_attributes(), dnnl_engine(),
      true);
  if (!primitive.get(true)) return nullptr;
  return make_dnnl_kernel(
      context, dnnl::softmax_forward(primitive), primitive,
      {{DNNL_ARG_SRC, square, {0}}, {DNNL_ARG_DST, square, {desc.in_place ? 0 : 1}}});
}

std::unique_ptr<Kernel> make_softmax_backward(const OpDesc& desc, const KernelContext& context) {
  const dnnl::memory::desc square = dnnl_desc(desc.operands[0]);
  const dnnl::softmax_forward::primitive_desc hint(
      {dnnl::prop_kind::forward_training, square, kLastAxis}, dnnl_attributes(), dnnl_engine(),
      true);
  if (!hint.get(true)) return nullptr;
  const dnnl::softmax_backward::primitive_desc primitive(
      {square, square, kLastAxis}, dnnl_attributes(), dnnl_engine(), hint, true);
  if (!primitive.get(true)) return nullptr;
  return make_dnnl_kernel(context, dnnl::softmax_backward(primitive), primitive,
                          {{DNNL_ARG_DST, square, {0}},
                           {DNNL_ARG_DIFF_DST, square, {1}},
                           {DNNL_ARG_DIFF_SRC, square, {desc.in_place ? 1 : 2}}});
}

}  // namespace

std::unique_ptr<Kernel> make_attention(const OpDesc& desc, const KernelContext& context) {
  const TeamSize team(context.threads);
  if (desc.find<AttentionScale>() != nullptr) return make_product(desc, context);
  if (desc.is<AttentionSoftmaxForward>()) return make_softmax(desc, context);
  if (desc.is<AttentionSoftmaxBackward>()) return make_softmax_backward(desc, context);
  return nullptr;
}

}  // namespace tidepool::nn::cpu
