#include <map>
#include <mutex>

#include "nn/kernels/cpu/factories.h"

namespace tidepool::nn {
namespace {

KernelList make_list(int threads) {
  KernelList list{"cpu", true, {std::begin(cpu::kFactories), std::end(cpu::kFactories)}};
  list.context.threads = threads;
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
