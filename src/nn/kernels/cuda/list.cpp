#include <algorithm>

#include "nn/kernels/cuda/cuda.h"
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

using Make = std::unique_ptr<Kernel> (*)(const OpDesc&, const CudaKernelOptions&);

template <Make make, bool tf32, bool nondeterministic>
std::unique_ptr<Kernel> factory(const OpDesc& desc) {
  const bool plain = std::all_of(desc.operands.begin(), desc.operands.end(),
                                 [](const TensorDesc& t) { return t.layout == Layout::plain; });
  if (!plain) return nullptr;
  return make(desc, {tf32, nondeterministic});
}

template <bool tf32, bool nondeterministic>
const KernelList& list() {
  static const KernelList kernels{
      std::string("cuda") + (tf32 ? "-tf32" : "") + (nondeterministic ? "-nondeterministic" : ""),
      false,
      {factory<make_convolution, tf32, nondeterministic>,
       factory<make_linear, tf32, nondeterministic>,
       factory<make_batch_norm, tf32, nondeterministic>,
       factory<make_pooling, tf32, nondeterministic>, factory<make_loss, tf32, nondeterministic>,
       factory<make_elementwise, tf32, nondeterministic>}};
  return kernels;
}

}  // namespace
}  // namespace cuda_kernels_detail

const KernelList& cuda_kernels(const CudaKernelOptions& options) {
  using cuda_kernels_detail::list;
  if (options.tf32) return options.nondeterministic ? list<true, true>() : list<true, false>();
  return options.nondeterministic ? list<false, true>() : list<false, false>();
}

void load_cuda_kernels() {
  device_code::load_elementwise();
  device_code::load_reductions();
  device_code::load_pooling();
}

}  // namespace tidepool::nn
