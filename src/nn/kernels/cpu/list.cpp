#include <map>
#include <mutex>

#include "nn/kernels/cpu/dnnl_kernel.h"
#include "nn/kernels/cpu/factories.h"

namespace tidepool::nn {
namespace {

/// What oneDNN has fast code for: with AVX-512 blocks of 16 channels, else (AVX2, SSE4.1) of 8. So
/// bytes of tensors, algorithms (Winograd takes AVX-512) and budgets differ between processors, and
/// tests ask what there is.
std::int64_t fast_channel_block() {
  constexpr auto kAvx512 = static_cast<unsigned>(dnnl::cpu_isa::avx512_core);
  const auto here = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
  return (here & kAvx512) == kAvx512 ? 16 : 8;
}

KernelList make_list(int threads) {
  KernelList list{
      "cpu", fast_channel_block(), {std::begin(cpu::kFactories), std::end(cpu::kFactories)}};
  list.context.threads = threads;
  list.adding = {cpu::make_adding_linear};
  const KernelList& reference = reference_kernels();
  list.factories.insert(list.factories.end(), reference.factories.begin(),
                        reference.factories.end());
  return list;
}

}  // namespace

const KernelList& cpu_kernels(int threads) {
  static std::mutex mutex;
  static std::map<int, KernelList> lists;
  const std::lock_guard lock(mutex);
  const auto found = lists.find(threads);
  return found != lists.end() ? found->second
                              : lists.emplace(threads, make_list(threads)).first->second;
}

}  // namespace tidepool::nn
