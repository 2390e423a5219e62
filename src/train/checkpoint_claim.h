// The file that a training saves to: this run's alone while it lasts, and nobody's work is lost.
#pragma once

#include "base/file_lock.h"
#include "base/observer.h"
#include "ir/program.h"
#include "train/training_spec.h"

namespace tidepool {

/// The lock, which is to be kept until nothing is saved any more; not held where nothing is saved.
/// Errors, before anything is measured: a file that is no checkpoint, a checkpoint that the
/// training does not go on from (unless `overwrite`), another run that saves to it, a disk without
/// room for what of `program` persists.
Result<FileLock> claim_checkpoint(const TrainingSpec& spec, const Program& program,
                                  Observer& observer);

}  // namespace tidepool
