#include "nn/kernels/sum_in_workspace.h"

#include <array>
#include <utility>

#include "base/at.h"
#include "nn/ops/op_desc.h"

namespace tidepool::nn {
namespace {

/// Of gradients, whose kernels take any address of whole floats; larger ones are for speed.
constexpr Bytes kAlignment = 64;

class SumInWorkspace final : public Kernel {
 public:
  SumInWorkspace(std::unique_ptr<Kernel> writing, std::size_t operands)
      : writing_(std::move(writing)), pointers_(operands) {
    for (KernelAlgorithm each : writing_->algorithms()) {
      each.workspace = align_up(each.workspace, kAlignment);
      begins_.push_back(each.workspace);
      algorithms_.push_back(std::move(each));
    }
  }

  /// Operand `operand` is a gradient of so many bytes, which `add` adds.
  void add_sum(std::size_t operand, Bytes bytes, std::unique_ptr<Kernel> add) {
    const Bytes room = align_up(bytes, kAlignment);
    sums_.push_back({operand, gradients_, std::move(add)});
    gradients_ += room;
    for (KernelAlgorithm& each : algorithms_) each.workspace += room;
  }

  [[nodiscard]] std::span<const KernelAlgorithm> algorithms() const override { return algorithms_; }

  void run(int algorithm, std::span<std::byte* const> pointers, std::byte* workspace,
           NativeStream stream) override {
    std::byte* const gradients = workspace + begins_[at(algorithm)];
    pointers_.assign(pointers.begin(), pointers.end());
    for (const Sum& sum : sums_) pointers_[sum.operand] = gradients + sum.offset;
    writing_->run(algorithm, pointers_, workspace, stream);
    for (const Sum& sum : sums_) {
      const std::array<std::byte*, 2> terms{pointers[sum.operand], gradients + sum.offset};
      sum.add->run(0, terms, nullptr, stream);
    }
  }

 private:
  struct Sum {
    std::size_t operand;
    Bytes offset;  ///< among the gradients
    std::unique_ptr<Kernel> add;
  };
  std::unique_ptr<Kernel> writing_;
  std::vector<KernelAlgorithm> algorithms_;
  std::vector<Bytes> begins_;  ///< of the gradients in each one's workspace, behind its own
  std::vector<Sum> sums_;
  Bytes gradients_ = 0;               ///< together
  std::vector<std::byte*> pointers_;  ///< of the run
};

}  // namespace

std::unique_ptr<Kernel> sum_in_workspace(const KernelList& kernels, const OpDesc& adding) {
  OpDesc desc = adding;
  desc.added = 0;
  auto writing = kernels.make(desc);
  if (writing == nullptr) return nullptr;
  auto kernel = std::make_unique<SumInWorkspace>(std::move(writing), desc.operands.size());
  for (std::size_t i = 0; i < desc.operands.size(); ++i) {
    if (!adding.adds(i)) continue;
    const TensorDesc& gradient = desc.operands[i];
    auto add = kernels.make({.op = AddForward{}, .in_place = true, .operands{gradient, gradient}});
    if (add == nullptr || add->algorithms()[0].workspace > 0) return nullptr;
    kernel->add_sum(i, gradient.bytes(), std::move(add));
  }
  return kernel;
}

}  // namespace tidepool::nn
