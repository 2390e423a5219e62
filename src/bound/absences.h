// Where tensors may be away from the device, and what each absence costs at least: the view of a
// program that the bounds share. It knows nothing of strategies: it models every schedule that runs
// each op once, in program order, and moves whole values between device and host.
//
// Note [Uploads]. What a host op makes anew in every iteration is copied in for the first device op
// that reads it: by one copy of the list, to one place, so not before that op of the iteration
// before has run. That is an absence over a whole iteration, from the op to itself. The value takes
// room beside what else the tensor holds until then, of which the load of a program knows nothing.
// Where the tensor rests in front of the host op nothing else comes back: that absence is dead.
// Left out are values that a host op made in the iteration before.
#pragma once

#include <vector>

#include "ir/access_index.h"

namespace tidepool {

/// A stretch between two successive accesses of one tensor by device ops. The tensor need not be on
/// the device in between.
struct Absence {
  TensorId tensor = kNone;
  OpId from = kNone;   ///< may leave after this op
  OpId to = kNone;     ///< has room again when this op starts
  bool wraps = false;  ///< `to` is in the next iteration
  /// Nothing needs to come back: `to` overwrites it.
  bool dead = false;
  /// Nothing needs to go out: a host op has the value, or it is the same in every iteration.
  bool host_has_it = false;
  /// A host op makes the value in every iteration anew: it comes in for `to`, whatever is decided.
  /// See Note [Uploads].
  bool upload = false;
  /// Neither dead nor on the host: the op of the iteration that makes the value, ...
  OpId born = kNone;
  bool carried = false;  ///< ... and whether the value at `to` is that of the previous iteration
  /// The absence before this one in the life of the same value, if any: what was copied out for
  /// that one need not be again.
  std::int32_t before = kNone;
  GapId gap = kNone;  ///< the gap it is, unless host ops use the tensor in between
};

/// By tensor, in the order of time; an absence that wraps is its tensor's last.
std::vector<Absence> absences_of(const Program& program, const AccessIndex& index);

/// Some device op runs in it; otherwise nothing is gained by being away.
bool sees_an_op(const Program& program, const Absence& absence);

}  // namespace tidepool
