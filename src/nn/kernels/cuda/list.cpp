#include <algorithm>

#include "nn/kernels/cuda/cuda.h"
#include "nn/kernels/cuda/factories.h"
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

KernelList list_for(const CudaKernelOptions& options) {
  KernelList list{std::string("cuda") + (options.tf32 ? "-tf32" : "") +
                      (options.nondeterministic ? "-nondeterministic" : ""),
                  false,
                  {make}};
  list.context.tf32 = options.tf32;
  list.context.nondeterministic = options.nondeterministic;
  return list;
}

}  // namespace
}  // namespace cuda_kernels_detail

const KernelList& cuda_kernels(const CudaKernelOptions& options) {
  using cuda_kernels_detail::list_for;
  static const KernelList lists[2][2] = {{list_for({false, false}), list_for({false, true})},
                                         {list_for({true, false}), list_for({true, true})}};
  return lists[options.tf32 ? 1 : 0][options.nondeterministic ? 1 : 0];
}

void load_cuda_kernels() {
  device_code::load_elementwise();
  device_code::load_reductions();
  device_code::load_pooling();
}

}  // namespace tidepool::nn
