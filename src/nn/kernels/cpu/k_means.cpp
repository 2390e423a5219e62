// Distances by oneDNN's products where they rank centroids clearly, in double where they may not.
#include <algorithm>
#include <cmath>

#include "nn/kernels/cpu/dnnl_kernel.h"
#include "nn/kernels/cpu/factories.h"
#include "nn/kernels/cpu/parallel.h"
#include "nn/kernels/cpu/team_size.h"
#include "nn/kernels/function_kernel.h"
#include "nn/kernels/k_means_bound.h"

namespace tidepool::nn::cpu {
namespace {

/// Eight sums side by side, in the same order on every machine.
TIDEPOOL_VECTOR_CLONES double squared_distance(const float* a, const float* b, std::int64_t width) {
  constexpr std::int64_t kLanes = 8;
  double lanes[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= width; i += kLanes) {
    for (std::int64_t l = 0; l < kLanes; ++l) {
      const double d = static_cast<double>(a[i + l]) - static_cast<double>(b[i + l]);
      lanes[l] += d * d;
    }
  }
  for (std::int64_t l = 0; i + l < width; ++l) {
    const double d = static_cast<double>(a[i + l]) - static_cast<double>(b[i + l]);
    lanes[l] += d * d;
  }
  return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) +
         ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

double squared_length(const float* a, std::int64_t width) {
  double sum = 0;
  for (std::int64_t i = 0; i < width; ++i) {
    sum += static_cast<double>(a[i]) * static_cast<double>(a[i]);
  }
  return sum;
}

/// Products become ranks: the squared distance without the point's own part.
TIDEPOOL_VECTOR_CLONES float rank(const float* norms, float* products, std::int64_t clusters) {
  float least = norms[0] - 2 * products[0];
#pragma omp simd reduction(min : least)
  for (std::int64_t k = 0; k < clusters; ++k) {
    products[k] = norms[k] - 2 * products[k];
    least = std::min(least, products[k]);
  }
  return least;
}

class AssignKernel final : public Kernel {
 public:
  AssignKernel(OpDesc desc, const KernelContext& context,
               const dnnl::inner_product_forward::primitive_desc& product)
      : desc_(std::move(desc)), threads_(context.threads) {
    const TensorDesc &points = desc_.operands[0], &centroids = desc_.operands[1];
    const TensorDesc norms{{centroids.dims[0]}};
    const TensorDesc products{{points.dims[0], centroids.dims[0]}};
    products_ = sequence_.temporary(dnnl_desc(products));
    norms_ = sequence_.temporary(dnnl_desc(norms));
    sequence_.add(dnnl::inner_product_forward(product), product,
                  {{DNNL_ARG_SRC, dnnl_desc(points), {0}},
                   {DNNL_ARG_WEIGHTS, dnnl_desc(centroids), {1}},
                   {DNNL_ARG_DST, dnnl_desc(products), products_}});
    algorithm_ = {"onednn", sequence_.workspace()};
  }

  [[nodiscard]] std::span<const KernelAlgorithm> algorithms() const override {
    return {&algorithm_, 1};
  }
  void run(int /*algorithm*/, Pointers pointers, std::byte* workspace,
           NativeStream /*stream*/) override {
    const TeamSize team(threads_);
    sequence_.run(pointers, workspace);
    const auto* points = reinterpret_cast<const float*>(pointers[0]);
    const auto* centroids = reinterpret_cast<const float*>(pointers[1]);
    auto* nearest = reinterpret_cast<std::int32_t*>(pointers[2]);
    auto* distances = reinterpret_cast<float*>(pointers[3]);
    auto* products = reinterpret_cast<float*>(workspace + products_.workspace_offset);
    auto* norms = reinterpret_cast<float*>(workspace + norms_.workspace_offset);
    const std::int64_t clusters = desc_.operands[1].dims[0], width = desc_.operands[1].dims[1];
    parallel_ranges(threads_, clusters, kFloatGrain, [&](auto begin, auto end) {
      for (std::int64_t k = begin; k < end; ++k) {
        norms[k] = static_cast<float>(squared_length(centroids + k * width, width));
      }
    });
    const auto largest = std::sqrt(static_cast<double>(*std::max_element(norms, norms + clusters)));
    parallel_ranges(threads_, desc_.operands[0].dims[0], 1, [&](auto begin, auto end) {
      for (std::int64_t n = begin; n < end; ++n) {
        const float* point = points + n * width;
        float* ranks = products + n * clusters;
        const double least = static_cast<double>(rank(norms, ranks, clusters));
        const double error = k_means_error(width, std::sqrt(squared_length(point, width)), largest);
        find_nearest(point, centroids, ranks, least + 2 * error, nearest + n, distances + n);
      }
    });
  }

 private:
  /// Of the centroids whose rank is not above `limit`, which all are where there are NaNs.
  void find_nearest(const float* point, const float* centroids, const float* ranks, double limit,
                    std::int32_t* nearest, float* distance) const {
    const std::int64_t clusters = desc_.operands[1].dims[0], width = desc_.operands[1].dims[1];
    std::int64_t best = -1;
    double least = 0;
    for (std::int64_t k = 0; k < clusters; ++k) {
      if (static_cast<double>(ranks[k]) > limit) continue;
      const double d = squared_distance(point, centroids + k * width, width);
      if (best >= 0 && !(d < least)) continue;
      best = k;
      least = d;
    }
    *nearest = static_cast<std::int32_t>(std::max<std::int64_t>(0, best));
    *distance = static_cast<float>(least);
  }

  OpDesc desc_;
  int threads_;
  DnnlSequence sequence_;
  DnnlPlace products_, norms_;
  KernelAlgorithm algorithm_;
};

std::unique_ptr<Kernel> make_assign(const OpDesc& desc, const KernelContext& context) {
  const TeamSize team(context.threads);
  const TensorDesc &points = desc.operands[0], &centroids = desc.operands[1];
  const TensorDesc products{{points.dims[0], centroids.dims[0]}};
  const dnnl::inner_product_forward::primitive_desc product(
      {dnnl::prop_kind::forward_inference, dnnl_desc(points), dnnl_desc(centroids),
       dnnl_desc(products)},
      dnnl_attributes(), dnnl_engine(), true);
  if (!product.get(true)) return nullptr;
  return std::make_unique<AssignKernel>(desc, context, product);
}

TIDEPOOL_VECTOR_CLONES void add_point(const float* point, float* sum, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) sum[i] += point[i];
}

/// Each thread takes some columns and goes through the points in order: the sums are the same
/// whatever the number of threads.
void accumulate(const OpDesc& desc, Pointers pointers, std::byte*, const KernelContext& context) {
  const auto* points = reinterpret_cast<const float*>(pointers[0]);
  const auto* nearest = reinterpret_cast<const std::int32_t*>(pointers[1]);
  const auto* distances = reinterpret_cast<const float*>(pointers[2]);
  auto* sums = reinterpret_cast<float*>(pointers[3]);
  auto* counts = reinterpret_cast<std::int32_t*>(pointers[4]);
  auto* inertia = reinterpret_cast<float*>(pointers[5]);
  const std::int64_t count = desc.operands[0].dims[0];
  const std::int64_t clusters = desc.operands[3].dims[0], width = desc.operands[3].dims[1];
  const auto is_cluster = [clusters](std::int32_t k) { return k >= 0 && k < clusters; };
  if (!desc.in_place) {
    std::fill_n(sums, clusters * width, 0.0F);
    std::fill_n(counts, clusters, 0);
    *inertia = 0;
  }
  parallel_ranges(context.threads, width, kFloatGrain, [&](auto begin, auto end) {
    for (std::int64_t n = 0; n < count; ++n) {
      if (!is_cluster(nearest[n])) continue;
      add_point(points + n * width + begin, sums + nearest[n] * width + begin, end - begin);
    }
  });
  double total = 0;
  for (std::int64_t n = 0; n < count; ++n) {
    if (is_cluster(nearest[n])) ++counts[nearest[n]];
    total += static_cast<double>(distances[n]);
  }
  *inertia += static_cast<float>(total);
  std::copy_n(nearest, count, reinterpret_cast<std::int32_t*>(pointers[6]));
}

void update_centroids(const OpDesc& desc, Pointers pointers, std::byte*,
                      const KernelContext& context) {
  const auto* sums = reinterpret_cast<const float*>(pointers[0]);
  const auto* counts = reinterpret_cast<const std::int32_t*>(pointers[1]);
  auto* centroids = reinterpret_cast<float*>(pointers[2]);
  const std::int64_t width = desc.operands[0].dims[1];
  parallel_ranges(context.threads, desc.operands[0].dims[0], 1, [&](auto begin, auto end) {
    for (std::int64_t k = begin; k < end; ++k) {
      if (counts[k] <= 0) continue;
      const auto of = static_cast<float>(counts[k]);
      for (std::int64_t i = k * width; i < (k + 1) * width; ++i) centroids[i] = sums[i] / of;
    }
  });
}

}  // namespace

std::unique_ptr<Kernel> make_k_means(const OpDesc& desc, const KernelContext& context) {
  if (desc.is<KMeansAssign>()) return make_assign(desc, context);
  if (desc.is<KMeansAccumulate>()) {
    return std::make_unique<FunctionKernel>(desc, context, "loop", accumulate);
  }
  if (desc.is<KMeansUpdate>()) {
    return std::make_unique<FunctionKernel>(desc, context, "loop", update_centroids);
  }
  return nullptr;
}

}  // namespace tidepool::nn::cpu
