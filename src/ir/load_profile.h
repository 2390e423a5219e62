// Memory load: device bytes live at each op when every tensor stays from its first device access
// to its last.
#pragma once

#include <span>
#include <vector>

#include "ir/access_index.h"

namespace tidepool {

struct LoadProfile {
  std::vector<Bytes> at_op;  ///< one per op, workspace included; host ops have the load between
  Bytes peak = 0;
  OpId peak_op = 0;
};

/// Sizes are rounded up to `alignment`. `algorithms` names one algorithm per op.
LoadProfile load_profile(const Program& program, const AccessIndex& index, Bytes alignment,
                         std::span<const std::int32_t> algorithms);

/// The program as the load of one device knows it: what other devices do is the host's there, and
/// has no workspace. The same ops, so that `algorithms` and the load at each op go with them.
Program loading_device(Program program, std::int32_t device);

/// Algorithm choices, one per op.
std::vector<std::int32_t> least_workspace_algorithms(const Program& program);
std::vector<std::int32_t> fastest_algorithms(const Program& program);

/// The times of all device ops: an iteration without any stall.
Nanos compute_time(const Program& program, std::span<const std::int32_t> algorithms);

/// Per op: device bytes that are there whatever is decided, beside what the op accesses: pinned
/// tensors as long as they live (also where the op accesses them), tensors that stay taken after
/// their last access, and in front of their first access and behind their last one those whose home
/// is the device.
std::vector<Bytes> unmovable_load(const Program& program, Bytes alignment);

/// What a device op needs while it runs: its tensors, each rounded up to `alignment`, the workspace
/// of the given algorithm, and the `unmovable` load at the op. 0 for host ops.
Bytes working_set(const Program& program, OpId id, Bytes alignment, int algorithm,
                  Bytes unmovable = 0);

/// The smallest budget in which the program can run at all: the largest working set with least
/// workspace (DESIGN.md section 3, lower). A lower bound where bytes are unmovable: their addresses
/// may leave holes that nothing fits in (`smallest_to_stream` in lower/lower.h counts them).
struct SmallestBudget {
  Bytes bytes = 0;
  OpId op = kNone;  ///< the op that sets it
  Bytes holes = 0;  ///< of the bytes: what addresses leave free between those that may not move
};
SmallestBudget smallest_budget(const Program& program, Bytes alignment);

/// "needs at least 12.3 MiB: op 'x' with tensors 'a' (4 MiB), ...", for error messages.
std::string explain(const SmallestBudget& smallest, const Program& program);

}  // namespace tidepool
