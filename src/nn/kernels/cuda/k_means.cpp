// K-means: products by cuBLAS, the rest by our own kernels.
#include <limits>

#include "nn/kernels/cuda/cublas_product.h"
#include "nn/kernels/cuda/factories.h"
#include "nn/kernels/cuda/launch.h"

namespace tidepool::nn::cuda_kernels_detail {
namespace {

device_code::KMeans shape_of(const TensorDesc& points, const TensorDesc& centroids) {
  return {points.dims[0], centroids.dims[0], centroids.dims[1]};
}

/// TF32 would leave too many centroids to look at in double; the result would be the same.
class AssignKernel final : public CublasKernel {
 public:
  explicit AssignKernel(const OpDesc& desc)
      : CublasKernel(desc, false,
                     static_cast<Bytes>(sizeof(float)) * (desc.operands[0].dims[0] + 1) *
                         desc.operands[1].dims[0]) {}

 private:
  void multiply(Pointers p, std::byte* own, const CudaStream& s) override {
    const device_code::KMeans shape = shape_of(desc().operands[0], desc().operands[1]);
    const auto points = static_cast<int>(shape.points), width = static_cast<int>(shape.width);
    const auto clusters = static_cast<int>(shape.clusters);
    auto* products = reinterpret_cast<float*>(own);
    float* norms = products + shape.points * shape.clusters;
    // products = points * centroids', of which cuBLAS sees the transposes.
    TIDEPOOL_CUDA_CHECK(cublas().cublasSgemm_v2(s.cublas(), CUBLAS_OP_T, CUBLAS_OP_N, clusters,
                                                points, width, &kOne, operand(p, 1), width,
                                                operand(p, 0), width, &kZero, products, clusters));
    device_code::k_means_norms(shape, operand(p, 1), norms, s.stream());
    device_code::k_means_nearest(shape, operand(p, 0), operand(p, 1), products, norms,
                                 operand<std::int32_t>(p, 2), operand(p, 3), s.stream());
  }
};

class AccumulateKernel final : public CudaKernel {
 public:
  explicit AccumulateKernel(const OpDesc& desc) : CudaKernel(desc) { add_algorithm("own", 0); }

 private:
  void enqueue(int, Pointers p, std::byte*, const CudaStream& s) override {
    const device_code::KMeans shape = shape_of(desc().operands[0], desc().operands[3]);
    const bool adds = desc().in_place;
    const auto* nearest = operand<std::int32_t>(p, 1);
    device_code::k_means_sums(shape, adds, operand(p, 0), nearest, operand(p, 3),
                              operand<std::int32_t>(p, 4), s.stream());
    device_code::k_means_inertia(shape.points, adds, operand(p, 2), nearest, operand(p, 5),
                                 operand<std::int32_t>(p, 6), s.stream());
  }
};

class UpdateKernel final : public CudaKernel {
 public:
  explicit UpdateKernel(const OpDesc& desc) : CudaKernel(desc) { add_algorithm("own", 0); }

 private:
  void enqueue(int, Pointers p, std::byte*, const CudaStream& s) override {
    const device_code::KMeans shape = shape_of(desc().operands[0], desc().operands[0]);
    device_code::k_means_update(shape, operand(p, 0), operand<std::int32_t>(p, 1), operand(p, 2),
                                s.stream());
  }
};

}  // namespace

std::unique_ptr<Kernel> make_k_means(const OpDesc& desc, const KernelContext& /*context*/) {
  if (desc.is<KMeansAssign>()) {
    // The products are counted in int, too.
    const std::int64_t products = desc.operands[0].dims[0] * desc.operands[1].dims[0];
    if (products > std::numeric_limits<int>::max()) return nullptr;
    return std::make_unique<AssignKernel>(desc);
  }
  if (desc.is<KMeansAccumulate>()) return std::make_unique<AccumulateKernel>(desc);
  if (desc.is<KMeansUpdate>()) return std::make_unique<UpdateKernel>(desc);
  return nullptr;
}

}  // namespace tidepool::nn::cuda_kernels_detail
