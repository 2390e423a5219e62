// Wear: the file that bytes leave to lies on a drive that bears only so many of them. Where a
// machine has one, the plan that writes least counts as the best of those that are as fast.
#pragma once

#include <vector>

#include "cost/machine.h"

namespace tidepool {

/// What leaves the device goes to a file.
bool leaves_to_file(const Machine& machine);

/// An iteration that takes no longer is as fast as one that takes `fastest`: 0.5 % more.
Nanos as_fast_as(Nanos fastest);

/// Per tensor: what a copy of it writes to the machine's file, in whole blocks; 0 where it goes to
/// the host, or where there is no file.
std::vector<Bytes> bytes_written_when_away(const Program& program, const Machine& machine);

}  // namespace tidepool
