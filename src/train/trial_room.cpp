#include "train/trial_room.h"

#include <algorithm>

#include "measure/expected_memory.h"

namespace tidepool {
namespace {

/// What plans may add to the heap that does not count: a part of the room that is left for what
/// running differs by.
constexpr Bytes kPartOfTheRoom = 2 * kMiB;
/// Where there was less, a training that tried plans was once seen above its limit: it took 149 KiB
/// an op beside what was resident before.
constexpr Bytes kPlanningOfAnOp = 160 * kKiB;

}  // namespace

ProcessMemory TrialRoom::memory_with(const Plan& plan) const {
  ProcessMemory memory = *memory_;
  memory.resident = counted();
  memory.host = plan.host_bytes();
  memory.hashes = bytes_of_hashes(*job_, plan);
  if (beside_ == nullptr) return memory;
  memory.host = std::max(memory.host, beside_->host_bytes());
  memory.hashes = std::max(memory.hashes, bytes_of_hashes(*job_, *beside_));
  return memory;
}

Bytes TrialRoom::counted() const {
  return planned_ + std::max<Bytes>(0, resident_ - before_ - kPartOfTheRoom);
}

bool TrialRoom::is_enough_for(std::size_t ops) const {
  return memory_ == nullptr ||
         memory_->limit - planned_ >= kPlanningOfAnOp * static_cast<Bytes>(ops);
}

void TrialRoom::make() {
  if (memory_ == nullptr) return;
  close_device_();
  measure();
  if (before_ == 0) before_ = resident_;
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

bool TrialRoom::holds(const Plan& plan, Bytes observed) const {
  if (memory_ == nullptr) return true;
  const Bytes arena = std::max(plan.device_bytes(), beside_ ? beside_->device_bytes() : 0);
  return memory_with(plan).holds(arena + observed);
}

void TrialRoom::keep(const Plan& plan) {
  if (memory_ == nullptr || resident_ == 0) return;
  *memory_ = memory_with(plan);
  memory_->resident = resident_;
}

}  // namespace tidepool
