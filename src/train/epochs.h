// Training as people do it: epochs, evaluation on the test split, checkpoints, resume.
#pragma once

#include "train/training_report.h"
#include "train/training_spec.h"

namespace tidepool {

/// Trains up to `spec.epochs` epochs in all and fills what follows into the report, which has its
/// preparation. `test`: what to evaluate on after each; may be null. When the observer stops it the
/// state is saved, where a checkpoint is asked for, and the error says how to go on.
Result<void> train_epochs(Job& job, const TrainingSpec& spec, const nn::SampleSource* test,
                          Planner& planner, TrainingReport& report, TrainingObserver& observer);

}  // namespace tidepool
