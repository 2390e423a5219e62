// Training for a number of iterations, where asked in turn with the same training without a budget.
#pragma once

#include "train/training_report.h"
#include "train/training_spec.h"

namespace tidepool {

/// Fills what follows from running `spec.iterations` into the report, which has its preparation.
/// Nothing is saved: stopping is an error. `planner` made the plan, and may correct it.
Result<void> train_iterations(Job& job, const TrainingSpec& spec, Planner& planner,
                              TrainingReport& report, TrainingObserver& observer);

}  // namespace tidepool
