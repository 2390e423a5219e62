#include "nn/kernel.h"

#include <algorithm>

#include "nn/kernels/sum_in_workspace.h"
#include "nn/ops/op_desc.h"

namespace tidepool::nn {

bool KernelList::adds_in_place(const OpDesc& desc) const {
  return std::ranges::any_of(
      adding, [&](KernelFactory factory) { return factory(desc, context) != nullptr; });
}

std::unique_ptr<Kernel> KernelList::make(const OpDesc& desc) const {
  for (const KernelFactory factory : desc.added != 0 ? adding : factories) {
    if (auto kernel = factory(desc, context)) return kernel;
  }
  return desc.added != 0 ? sum_in_workspace(*this, desc) : nullptr;
}

}  // namespace tidepool::nn
