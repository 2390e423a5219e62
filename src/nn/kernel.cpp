#include "nn/kernel.h"

namespace tidepool::nn {

std::unique_ptr<Kernel> KernelList::make(const OpDesc& desc) const {
  for (const KernelFactory factory : factories) {
    if (auto kernel = factory(desc, context)) return kernel;
  }
  return nullptr;
}

}  // namespace tidepool::nn
