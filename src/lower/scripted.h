// scripted: a complete order with addresses becomes a plan. For planners that decide every address
// themselves. Derives the waits; decides nothing else.
//
// Note [Derived waits]. The list is walked twice, as the iteration before and as this one, with the
// last writer and the last readers (the latest of each stream) of every byte range of every space.
// What an item must wait for is: the last writer of what it touches; where it writes, also the
// last readers; of a host op, the host op before it; barriers; and where tensors have one place at
// a time, the uses of the place that is left. Stream order and the waits so far are kept as vector
// clocks, so that what follows from others is no wait. What the second walk finds in the first is a
// wait for the iteration before. The first walk misses only waits that reach behind it, and nothing
// within an iteration can follow from those; so both find the same waits within an iteration.
#pragma once

#include <vector>

#include "base/result.h"
#include "schedule/schedule.h"

namespace tidepool {

/// One instruction of the steady state.
struct ScriptItem {
  InstructionKind kind = InstructionKind::op;  ///< op or copy
  StreamId stream = 0;
  // op
  OpId op = kNone;
  std::int32_t algorithm = 0;
  std::vector<PlacementId> operands;  ///< one per access of the op, in its order
  Bytes workspace_offset = 0;         ///< of the algorithm's workspace, in the op's device
  // copy
  PlacementId from = kNone;
  PlacementId to = kNone;
  /// Barriers: earlier items of the list that must have completed.
  std::vector<std::int32_t> after;
  /// The same of the iteration before: any items.
  std::vector<std::int32_t> after_previous{};
};

/// What runs where and in which order, over any number of devices, spaces and streams.
struct Script {
  std::vector<Arena> arenas;  ///< by SpaceId, as the steady state needs them
  std::vector<Stream> streams;
  std::vector<Placement> placements;
  /// One per persistent tensor: where its value lies between iterations.
  std::vector<PlacementId> boundary;
  std::vector<ScriptItem> items;  ///< in issue order
  /// Of copies between the host and a file that only the host has links with; kNone: there is none.
  StreamId to_file = kNone;
  StreamId from_file = kNone;
};

/// The script with the waits it needs, with entry and exit. Fails with `bad_input` where an item
/// names something that does not exist, a barrier does not point backwards, or host ops are not in
/// the program's order. `check` proves what comes out: this does not ask whether values are right.
/// Of n items it takes O(n log n) time.
Result<Plan> plan_of_script(const Program& program, const Script& script);

}  // namespace tidepool
