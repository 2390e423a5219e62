#include "nn/kernels/reference/reference.h"

namespace tidepool::nn {
namespace {

template <class Op>
void run(const OpDesc& desc, Pointers pointers, std::byte* /*workspace*/,
         const KernelContext& /*context*/) {
  reference::run(std::get<Op>(desc.op), desc, pointers);
}

std::unique_ptr<Kernel> make_reference(const OpDesc& desc, const KernelContext& context) {
  return std::visit(
      [&]<class Op>(const Op& /*op*/) -> std::unique_ptr<Kernel> {
        if constexpr (on_host(Op::role)) {
          return nullptr;
        } else {
          return std::make_unique<FunctionKernel>(desc, context, "reference", run<Op>);
        }
      },
      desc.op);
}

}  // namespace

const KernelList& reference_kernels() {
  static const KernelList list{"reference", 1, {make_reference}};
  return list;
}

}  // namespace tidepool::nn
