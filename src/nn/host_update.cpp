#include "nn/host_update.h"

#include <array>
#include <cassert>

namespace tidepool::nn {
namespace {

struct Taken {
  AnyOp update;
  std::int64_t others = 0;
};

Taken taken_from(const OpDesc& desc) {
  if (const auto* sgd = desc.find<HostSgdUpdate>()) return {sgd->update, sgd->inputs};
  const auto& adamw = desc.get<HostAdamwUpdate>();
  return {adamw.update, adamw.inputs};
}

}  // namespace

bool HostUpdate::is(const OpDesc& desc) { return desc.role() == OpRole::host_update; }

HostUpdate::HostUpdate(const OpDesc& desc, const KernelList& kernels) {
  KernelList alone = kernels.on_host != nullptr ? *kernels.on_host : kernels;
  alone.context.threads = 1;
  const Taken taken = taken_from(desc);
  gradients_ = static_cast<std::size_t>(taken.others) + 1;
  const TensorDesc& gradient = desc.operands[0];
  add_ = alone.make({.op = AddForward{}, .in_place = true, .operands = {gradient, gradient}});
  OpDesc update{taken.update};
  const TensorDesc block{{static_cast<std::int64_t>(sizeof(ControlBlock))}, ElementType::u8};
  update.operands = {gradient, block};
  update.operands.insert(update.operands.end(),
                         desc.operands.begin() + static_cast<std::ptrdiff_t>(gradients_),
                         desc.operands.end());
  update_ = alone.make(update);
  assert(add_ && update_);
  operands_.resize(update.operands.size());
}

void HostUpdate::run(std::span<std::byte* const> pointers, ControlBlock control) {
  for (std::size_t g = 1; g < gradients_; ++g) {
    add_->run(0, std::array{pointers[0], pointers[g]}, nullptr, nullptr);
  }
  operands_[0] = pointers[0];
  operands_[1] = reinterpret_cast<std::byte*>(&control);
  for (std::size_t k = 2; k < operands_.size(); ++k) operands_[k] = pointers[gradients_ + k - 2];
  update_->run(0, operands_, nullptr, nullptr);
}

}  // namespace tidepool::nn
