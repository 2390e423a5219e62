// What no schedule can beat at the one op that binds: a bound in milliseconds, for programs whose
// fluid relaxation (fluid.h) takes longer than there is time for. Weaker than that one: it looks at
// one op at a time.
//
// Note [Binding op]. While op k runs, what is live beyond the limit must be away: E bytes. With an
// overhead of O (stalls and clones, of the whole iteration) no more can be away than
//   - what comes back over the link between the end of k and the next use: of all absences whose
//     next use is no later than some op j, what the link carries in the compute time from k to j
//     and O; and, where the host has no copy, what left between the op that made the value and k;
//   - what is made again in O, each byte as cheaply as by running the op that made it once for all
//     it makes (values that cannot be made again by recipes.h never are);
//   - the padding of all of these, and what nobody needs.
// Windows wrap over the end of the iteration once. The least O for which that is E or more is a
// lower bound; the largest of those of the ops with most live bytes is returned.
#pragma once

#include "bound/fluid.h"

namespace tidepool {

/// The same promise as FluidBound::overhead; 0 where nothing is known. Limits of the host do not
/// count.
Nanos binding_op_bound(const FluidProblem& problem, Bytes limit);

}  // namespace tidepool
