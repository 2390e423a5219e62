// Training as a whole: TrainingSpec -> measure -> plan -> prove -> run -> TrainingReport.
//
//   TrainingSpec spec;
//   spec.job.model = "vgg16";
//   spec.budget.device = {.bytes = 200 * kMiB};
//   TrainingObserver observer;
//   const auto report = run_training(spec, observer);
#pragma once

#include "train/training_report.h"
#include "train/training_spec.h"

namespace tidepool {

/// Everything from the first byte on is inside the budget, device and host: profiling, planning,
/// running, evaluation. Only a comparison runs without one, beside it. Blocks the caller until the
/// training is over. Errors: `usage` (a spec that makes no sense, an unknown name), `bad_input` (a
/// file), `infeasible` (the smallest feasible budget is named), `check_failed` (a plan file or a
/// plan is wrong), `interrupted` (the observer stopped it). A training whose comparison finds other
/// bits is no error: the report says so. Throws DeviceError when the device fails.
Result<TrainingReport> run_training(const TrainingSpec& spec, TrainingObserver& observer);

}  // namespace tidepool
