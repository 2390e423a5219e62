// What trials may take of the RAM of the process, where that is all a training has.
#pragma once

#include <functional>
#include <span>
#include <utility>

#include "base/stop.h"
#include "job/job.h"
#include "planning/process_memory.h"

namespace tidepool {

// Note [Trials in memory]. A training with `memory` has planned in the room of its device before
// that was opened, and has no other room for planning. So its device is closed around the planning
// of trials: weights and optimizer state wait in the file where they wait between epochs, bit for
// bit. What planning needed goes back to the kernel, what the plans that are kept have added to the
// heap is measured, and plans that find no room beside it are not tried. Then one device is opened
// for all that take turns, with the largest of their arenas, so that nothing is closed between two
// blocks: what is resident, those arenas and all that is counted with them stays inside.

class TrialRoom {
 public:
  /// There is enough for planning beside the device.
  TrialRoom() = default;
  /// `memory` is what was found when the first plan was made; it follows the plan that is kept.
  /// Null: there is no limit. `close_device` gives back all that the device takes, if it is open.
  /// Where another plan takes turns on the same device, such as that of evaluations, it is
  /// `beside`. All outlive this.
  TrialRoom(const Job& job, ProcessMemory* memory, std::function<void()> close_device,
            const Plan* beside = nullptr)
      : job_(&job),
        memory_(memory),
        planned_(memory == nullptr ? 0 : memory->resident),
        close_device_(std::move(close_device)),
        beside_(beside) {}

  /// What takes memory for a while, such as planners one after the other. Where there is a limit
  /// the device is closed before, and what is free after goes back to the kernel.
  Result<void> lend(const std::function<Result<void>()>& work);
  /// For their budgets: never more of the device than there was for the first plan, which `budget`
  /// is, and less where more is resident now.
  [[nodiscard]] Budget inside(Budget budget) const;
  /// Ends planning that takes more than there is.
  [[nodiscard]] Stop ends(Stop stop) const;
  /// Anew, after plans were dropped.
  void measure();
  /// Whether these plans can take turns on one device, with so many bytes kept of what is observed
  /// while they do.
  [[nodiscard]] bool holds(std::span<const Plan* const> plans, Bytes observed) const;
  /// This is the plan that is kept.
  void keep(const Plan& plan);

 private:
  [[nodiscard]] Bytes counted() const;
  [[nodiscard]] ProcessMemory memory_with(std::span<const Plan* const> plans) const;

  const Job* job_ = nullptr;
  ProcessMemory* memory_ = nullptr;  ///< null: there is no limit
  Bytes planned_ = 0;                ///< resident when the first plan was made
  Bytes before_ = 0;                 ///< ... and when it had run, before there were others
  std::function<void()> close_device_;
  const Plan* beside_ = nullptr;
  Bytes resident_ = 0;  ///< when it was measured last
};

}  // namespace tidepool
