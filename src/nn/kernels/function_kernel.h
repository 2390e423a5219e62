// FunctionKernel: a kernel that is one plain function of its OpDesc.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>

#include "nn/kernel.h"
#include "nn/ops/op_desc.h"

namespace tidepool::nn {

/// Operand addresses in the order of the op's operands.
using Pointers = std::span<std::byte* const>;

using KernelFunction = void (*)(const OpDesc& desc, Pointers pointers, std::byte* workspace,
                                const KernelContext& context);

class FunctionKernel final : public Kernel {
 public:
  FunctionKernel(OpDesc desc, const KernelContext& context, std::string name,
                 KernelFunction function, Bytes workspace = 0)
      : desc_(std::move(desc)),
        context_(context),
        function_(function),
        algorithm_{std::move(name), workspace} {}

  [[nodiscard]] std::span<const KernelAlgorithm> algorithms() const override {
    return {&algorithm_, 1};
  }
  void run(int /*algorithm*/, Pointers pointers, std::byte* workspace,
           NativeStream /*stream*/) override {
    function_(desc_, pointers, workspace, context_);
  }

 private:
  OpDesc desc_;
  KernelContext context_;
  KernelFunction function_;
  KernelAlgorithm algorithm_;
};

}  // namespace tidepool::nn
