// What trials may take of the RAM of the process, where that is all a training has.
#pragma once

#include <functional>
#include <utility>

#include "base/stop.h"
#include "job/job.h"
#include "planning/process_memory.h"

namespace tidepool {

// Note [Trials in memory]. A training with `memory` has planned in the room of its device before
// that was opened, and has no other room for planning. So its device is closed around the planning
// of trials: weights and optimizer state wait in the file where they wait between epochs, bit for
// bit. What planning and the plans that are kept have added to the heap is measured before anything
// is opened again, and plans that find no room beside it are not tried. Between blocks of two plans
// one device is closed before the other is opened, so that what is resident, the larger of their
// arenas and all that is counted with it stays inside.

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

  /// Whether planners one after the other, and their plans, find room for so many ops.
  [[nodiscard]] bool is_enough_for(std::size_t ops) const;
  /// Before plans are made: the device is closed.
  void make();
  /// For their budgets: never more of the device than there was for the first plan, which `budget`
  /// is, and less where more is resident now.
  [[nodiscard]] Budget inside(Budget budget) const;
  /// Ends planning that takes more than there is.
  [[nodiscard]] Stop ends(Stop stop) const;
  /// After plans were made, and some of them dropped.
  void measure();
  /// Whether this plan can run, with so many bytes kept of what is observed while it does.
  [[nodiscard]] bool holds(const Plan& plan, Bytes observed) const;
  /// This is the plan that is kept.
  void keep(const Plan& plan);

 private:
  [[nodiscard]] Bytes counted() const;
  [[nodiscard]] ProcessMemory memory_with(const Plan& plan) const;

  const Job* job_ = nullptr;
  ProcessMemory* memory_ = nullptr;  ///< null: there is no limit
  Bytes planned_ = 0;                ///< resident when the first plan was made
  Bytes before_ = 0;                 ///< ... and when it had run, before there were others
  std::function<void()> close_device_;
  const Plan* beside_ = nullptr;
  Bytes resident_ = 0;  ///< when it was measured last
};

}  // namespace tidepool
