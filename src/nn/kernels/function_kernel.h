// FunctionKernel: a kernel that is one plain function of its OpDesc.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>

#include "nn/kernel.h"

namespace tidepool::nn {

/// Operand addresses in the order of the op's operands.
using Pointers = std::span<std::byte* const>;

using KernelFunction = void (*)(const OpDesc& desc, Pointers pointers, std::byte* workspace);

class FunctionKernel final : public Kernel {
 public:
  FunctionKernel(OpDesc desc, std::string name, KernelFunction function, Bytes workspace)
      : desc_(std::move(desc)), function_(function), algorithm_{std::move(name), workspace} {}

  [[nodiscard]] std::span<const KernelAlgorithm> algorithms() const override {
    return {&algorithm_, 1};
  }
  void run(int /*algorithm*/, Pointers pointers, std::byte* workspace,
           NativeStream /*stream*/) override {
    function_(desc_, pointers, workspace);
  }

 private:
  OpDesc desc_;
  KernelFunction function_;
  KernelAlgorithm algorithm_;
};

}  // namespace tidepool::nn
