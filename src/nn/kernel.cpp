#include "nn/kernel.h"

#include <cassert>
#include <cstdlib>

namespace tidepool::nn {

std::unique_ptr<Kernel> KernelList::make(const OpDesc& desc) const {
  for (const KernelFactory factory : factories) {
    if (auto kernel = factory(desc)) return kernel;
  }
  assert(false && "no kernel takes this op");
  std::abort();
}

}  // namespace tidepool::nn
