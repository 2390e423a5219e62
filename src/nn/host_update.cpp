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
  if (const auto* statistics = desc.find<HostBatchNormStatistics>()) {
    const TensorDesc& channels = desc.operands[0];
    update_ = alone.make(
        {.op = statistics->update, .operands = {channels, channels, channels, channels}});
  } else {
    make_update_of_weight(desc, alone);
  }
  assert(update_);
}

void HostUpdate::make_update_of_weight(const OpDesc& desc, const KernelList& alone) {
  const Taken taken = taken_from(desc);
  gradients_ = static_cast<std::size_t>(taken.others) + 1;
  const TensorDesc& gradient = desc.operands[0];
  add_ = alone.make({.op = AddForward{}, .in_place = true, .operands = {gradient, gradient}});
  assert(add_);
  OpDesc update{taken.update};
  const TensorDesc block{{static_cast<std::int64_t>(sizeof(ControlBlock))}, ElementType::u8};
  update.operands = {gradient, block};
  update.operands.insert(update.operands.end(),
                         desc.operands.begin() + static_cast<std::ptrdiff_t>(gradients_),
                         desc.operands.end());
  update_ = alone.make(update);
  operands_.resize(update.operands.size());
}

void HostUpdate::run(std::span<std::byte* const> pointers, ControlBlock control) {
  if (gradients_ == 0) return run_update_of_statistics(pointers);
  for (std::size_t g = 1; g < gradients_; ++g) {
    add_->run(0, std::array{pointers[0], pointers[g]}, nullptr, nullptr);
  }
  operands_[0] = pointers[0];
  operands_[1] = reinterpret_cast<std::byte*>(&control);
  for (std::size_t k = 2; k < operands_.size(); ++k) operands_[k] = pointers[gradients_ + k - 2];
  update_->run(0, operands_, nullptr, nullptr);
}

void HostUpdate::run_update_of_statistics(std::span<std::byte* const> pointers) {
  for (std::size_t part = 2; part < pointers.size(); part += 2) {
    update_->run(0, std::array{pointers[part], pointers[part + 1], pointers[0], pointers[1]},
                 nullptr, nullptr);
  }
}

}  // namespace tidepool::nn
