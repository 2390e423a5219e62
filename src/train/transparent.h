// A model of nn trained op by op through a Session: as a program without a graph would be, in a
// budget. What a plan can say of it is found while it runs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "session/session.h"
#include "train/training_observer.h"
#include "train/training_report.h"
#include "train/training_spec.h"

namespace tidepool {

struct TransparentReport {
  std::string device;
  std::string data;
  int threads = 0;
  Machine machine;
  Bytes budget = 0;
  Bytes unlimited_peak = 0;
  std::int64_t iterations = 0;
  std::int64_t planned_iterations = 0;  ///< all of whose ops a plan served
  std::int64_t first_planned = 0;       ///< number of the first of them, from 1; 0: there is none
  Nanos unplanned{};  ///< median of the others, without the first of all; 0: there are none
  Spread planned{};   ///< of these; its median is 0 where there are none
  Nanos planning{};   ///< that the training waited for plans
  SessionReport session;
  std::vector<float> losses;
  std::uint32_t state_crc32 = 0;     ///< of all persistent tensors
  std::optional<Baseline> baseline;  ///< run after it; with `memory` before it
  std::optional<MemoryReport> memory;
  std::optional<FileReport> file;  ///< of its iterations, where there is a file

  [[nodiscard]] double planned_share() const {
    return static_cast<double>(planned_iterations) / static_cast<double>(iterations);
  }
};

/// `spec.budget.device` is the Session's budget, `spec.budget.host` what leaves the device takes at
/// most. With `memory` and `spill` the budget is what the memory of the process leaves, and what
/// leaves goes to a file. On devices whose kernels run on the thread that calls them. Errors and
/// exceptions are those of `run_training` (train.h); fields that mean nothing here must not be set.
Result<TransparentReport> run_transparently(const TrainingSpec& spec, TrainingObserver& observer);

}  // namespace tidepool
