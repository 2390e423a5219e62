#include "train/trial_room.h"

#include <algorithm>

#include "measure/expected_memory.h"

namespace tidepool {
namespace {

/// What plans may add to the heap that does not count: a part of the room that is left for what
/// running differs by.
constexpr Bytes kPartOfTheRoom = 2 * kMiB;

}  // namespace

ProcessMemory TrialRoom::memory_with(std::span<const Plan* const> plans) const {
  ProcessMemory memory = *memory_;
  memory.resident = counted();
  memory.host = memory.hashes = 0;
  const auto add = [&](const Plan& plan) {
    memory.host = std::max(memory.host, plan.host_bytes());
    memory.hashes = std::max(memory.hashes, bytes_of_hashes(*job_, plan));
  };
  for (const Plan* plan : plans) add(*plan);
  if (beside_ != nullptr) add(*beside_);
  return memory;
}

Bytes TrialRoom::counted() const {
  return planned_ + std::max<Bytes>(0, resident_ - before_ - kPartOfTheRoom);
}

Result<void> TrialRoom::lend(const std::function<Result<void>()>& work) {
  if (memory_ == nullptr) return work();
  close_device_();
  measure();
  if (before_ == 0) before_ = resident_;
  auto done = work();
  measure();
  return done;
}

void TrialRoom::measure() {
  if (memory_ != nullptr) resident_ = resident_beside_arenas();
}

Budget TrialRoom::inside(Budget budget) const {
  if (memory_ == nullptr) return budget;
  ProcessMemory now = *memory_;
  now.resident = counted();
  budget.device = std::min(budget.device, now.largest_arena(job_->alignment()));
  return budget;
}

Stop TrialRoom::ends(Stop stop) const {
  return memory_ == nullptr ? stop : where_memory_ends(memory_->limit, std::move(stop));
}

bool TrialRoom::holds(std::span<const Plan* const> plans, Bytes observed) const {
  if (memory_ == nullptr) return true;
  Bytes arena = beside_ == nullptr ? 0 : beside_->device_bytes();
  for (const Plan* plan : plans) arena = std::max(arena, plan->device_bytes());
  return memory_with(plans).holds(arena + observed);
}

void TrialRoom::keep(const Plan& plan) {
  if (memory_ == nullptr || resident_ == 0) return;
  const Plan* const kept = &plan;
  *memory_ = memory_with({&kept, 1});
  memory_->resident = resident_;
}

}  // namespace tidepool
