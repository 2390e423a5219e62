// What `tidepool train --transparent` prints.
#pragma once

#include "base/json_fwd.h"
#include "train/training_spec.h"
#include "train/transparent.h"

namespace tidepool::cli {

Json to_json(const TrainingSpec& spec, const TransparentReport& report);
/// On stdout, for people.
void print_report(const TrainingSpec& spec, const TransparentReport& report);

}  // namespace tidepool::cli
