#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "nn/kernels/cpu/dnnl_kernel.h"
#include "nn/kernels/cpu/factories.h"
#include "nn/kernels/cpu/parallel.h"
#include "nn/kernels/cpu/product.h"
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

/// The sums of columns over the rows, in their order, added to `sums` or in their place.
TIDEPOOL_VECTOR_CLONES void sum_columns(const float* dy, std::int64_t rows, std::int64_t pitch,
                                        std::int64_t columns, bool adds, float* sums) {
  for (std::int64_t first = 0; first < columns; first += kFloatGrain) {
    const std::int64_t lanes = std::min(kFloatGrain, columns - first);
    std::array<float, kFloatGrain> sum{};
    for (std::int64_t row = 0; row < rows; ++row) {
      const float* from = dy + row * pitch + first;
#pragma omp simd
      for (std::int64_t lane = 0; lane < lanes; ++lane) {
        sum[static_cast<std::size_t>(lane)] += from[lane];
      }
    }
    for (std::int64_t lane = 0; lane < lanes; ++lane) {
      float& to = sums[first + lane];
      to = (adds ? to : 0) + sum[static_cast<std::size_t>(lane)];
    }
  }
}

/// Backward weights by a product of oneDNN, which can add as its inner product cannot, and by sums
/// of our own.
class AddingLinear final : public Kernel {
 public:
  AddingLinear(OpDesc desc, int threads, Product product)
      : desc_(std::move(desc)),
        threads_(threads),
        product_(std::move(product)),
        algorithm_{"onednn", product_.scratch()} {}

  [[nodiscard]] std::span<const KernelAlgorithm> algorithms() const override {
    return {&algorithm_, 1};
  }
  void run(int /*algorithm*/, std::span<std::byte* const> pointers, std::byte* workspace,
           NativeStream /*stream*/) override {
    const TeamSize team(threads_);
    const auto* dy = reinterpret_cast<const float*>(pointers[1]);
    product_.run(dy, reinterpret_cast<const float*>(pointers[0]),
                 reinterpret_cast<float*>(pointers[2]), workspace);
    if (desc_.is<ProjectionBackwardWeights>()) return;
    auto* dbias = reinterpret_cast<float*>(pointers[3]);
    const std::int64_t rows = desc_.operands[1].dims[0], columns = desc_.operands[1].dims[1];
    parallel_ranges(threads_, columns, kFloatGrain, [&](auto begin, auto end) {
      sum_columns(dy + begin, rows, columns, end - begin, desc_.adds(3), dbias + begin);
    });
  }

 private:
  OpDesc desc_;
  int threads_;
  Product product_;
  KernelAlgorithm algorithm_;
};

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

std::unique_ptr<Kernel> make_adding_linear(const OpDesc& desc, const KernelContext& context) {
  if (!desc.is<LinearBackwardWeights>() && !desc.is<ProjectionBackwardWeights>()) return nullptr;
  if (!desc.adds(2)) return nullptr;  // to that of the bias alone
  const TeamSize team(context.threads);
  const std::int64_t rows = desc.operands[0].dims[0], in = desc.operands[0].dims[1],
                     out = desc.operands[1].dims[1];
  auto product =
      Product::make(transposed({rows, out, out}), {rows, in, in}, {out, in, in}, Sum::added_whole);
  if (!product) return nullptr;
  return std::make_unique<AddingLinear>(desc, context.threads, std::move(*product));
}

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
