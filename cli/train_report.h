// What `tidepool train` prints.
#pragma once

#include "base/json_fwd.h"
#include "train/training_observer.h"
#include "train/training_report.h"
#include "train/training_spec.h"

namespace tidepool::cli {

Json to_json(const TrainingSpec& spec, const TrainingReport& report);
/// On stdout, for people.
void print_report(const TrainingSpec& spec, const TrainingReport& report);
void print_epoch(const EpochReport& report);

}  // namespace tidepool::cli
