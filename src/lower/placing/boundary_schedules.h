// Entry and exit of a plan: what brings persistent tensors to where an iteration expects them, and
// hands their final values back.
#pragma once

#include "schedule/schedule.h"

namespace tidepool {

/// The streams that entry and exit use. One for all copies of each: those that take turns on a
/// channel have to be on one stream.
struct BoundaryStreams {
  StreamId in = 0;    ///< of copies to the device
  StreamId out = 0;   ///< of copies off the device
  StreamId host = 0;  ///< of loads and stores
  /// Of copies between the host and a file behind it; kNone: files are reached from the device.
  StreamId to_file = kNone;
  StreamId from_file = kNone;
};

/// Makes `plan.entry` and `plan.exit` of `plan.boundary`. Persistent tensors that do not live on
/// the host between iterations pass through one staging area there, above the host placements that
/// hold values between iterations; the host's arena grows where it has to. Those that lie in a file
/// pass through the beginning of the device's arena too, while nothing else is there: before values
/// are brought to the device, and after they have left it.
///
/// With streams of copies between host and file all staging is at the beginning of the host's
/// arena: the values that stay on the host are loaded last and stored first. So the host needs no
/// more than its largest value.
void add_boundary_schedules(const BoundaryStreams& streams, Plan& plan);

}  // namespace tidepool
