// Training for a number of iterations, where asked in turn with the same training without a budget.
#pragma once

#include "train/training_report.h"

namespace tidepool {

/// Fills what follows from running `spec.iterations` into the report, which has its preparation.
/// Nothing is saved: stopping is an error.
Result<void> train_iterations(const Job& job, const TrainingSpec& spec, TrainingReport& report,
                              Observer& observer);

}  // namespace tidepool
