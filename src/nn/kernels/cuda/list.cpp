#include <algorithm>
#include <array>
#include <limits>

#include "nn/kernels/cuda/cuda.h"
#include "nn/kernels/cuda/factories.h"
#include "nn/kernels/cuda/host_updates.h"
#include "nn/kernels/cuda/kernel_support.h"
#include "nn/kernels/cuda/launch.h"

namespace tidepool::nn {
namespace cuda_kernels_detail {

cudnnHandle_t question_handle() {
  // Lives as long as the process: the driver may be gone before any destructor of ours.
  static auto* const handle = [] {
    cudnnHandle_t made = nullptr;
    TIDEPOOL_CUDA_CHECK(cudnn().cudnnCreate(&made));
    return made;
  }();
  return handle;
}

namespace {

bool all_plain(const OpDesc& desc) {
  return std::all_of(desc.operands.begin(), desc.operands.end(),
                     [](const TensorDesc& t) { return t.layout == Layout::plain; });
}

/// What the factories share: none knows another layout.
std::unique_ptr<Kernel> make(const OpDesc& desc, const KernelContext& context) {
  if (!all_plain(desc)) return nullptr;
  for (const KernelFactory factory : kFactories) {
    if (auto kernel = factory(desc, context)) return kernel;
  }
  return nullptr;
}

/// By cuBLAS and cuDNN, whose results are blends of the new and the old value.
std::unique_ptr<Kernel> make_adding(const OpDesc& desc, const KernelContext& context) {
  if (!all_plain(desc)) return nullptr;
  if (desc.is<ConvBackwardWeights>()) return make_adding_convolution(desc, context);
  return make_linear(desc, context);
}

KernelList list_for(const CudaKernelOptions& options) {
  KernelList list{std::string("cuda") + (options.tf32 ? "-tf32" : "") +
                      (options.nondeterministic ? "-nondeterministic" : "") +
                      (options.own_convolutions ? "-own-convolutions" : ""),
                  1,
                  {make}};
  // cuDNN's descriptors, cuBLAS' sizes and this folder's count in int.
  list.most_elements = std::numeric_limits<int>::max();
  list.on_host = &cuda_host_kernels();
  list.adding = {make_adding};
  list.context.tf32 = options.tf32;
  list.context.nondeterministic = options.nondeterministic;
  list.context.own_convolutions = options.own_convolutions;
  return list;
}

}  // namespace
}  // namespace cuda_kernels_detail

const KernelList& cuda_kernels(const CudaKernelOptions& options) {
  using cuda_kernels_detail::list_for;
  static const auto* const lists = [] {
    auto* all = new std::array<KernelList, 8>;  // as long as the process
    for (std::size_t i = 0; i < all->size(); ++i) {
      (*all)[i] = list_for({(i & 1) != 0, (i & 2) != 0, (i & 4) != 0});
    }
    return all;
  }();
  return (*lists)[(options.tf32 ? 1U : 0U) + (options.nondeterministic ? 2U : 0U) +
                  (options.own_convolutions ? 4U : 0U)];
}

void load_cuda_kernels() {
  device_code::load_elementwise();
  device_code::load_reductions();
  device_code::load_pooling();
  device_code::load_convolution();
  device_code::load_embedding();
  device_code::load_layer_norm();
  device_code::load_attention();
  device_code::load_upsample();
  device_code::load_k_means();
  device_code::load_lstm();
}

}  // namespace tidepool::nn
