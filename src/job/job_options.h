// The options of a JobSpec as records, each with the field that it sets. `model` and `seed` are not
// among them: the one is what a command is about, the other a number beyond those of records.
#pragma once

#include <span>

#include "base/option.h"
#include "job/job_spec.h"

namespace tidepool {

struct JobOption {
  OptionRecord record;
  /// The value is one of the record's.
  void (*set)(JobSpec& job, const OptionValue& value);
};

/// In the order in which help has them.
std::span<const JobOption> job_options();
/// Those of several devices, for what runs or plans on more than one.
std::span<const JobOption> parallel_options();

}  // namespace tidepool
