// The events of a recorded iteration as a graph (DQN paper, section 4.2), and which node stands for
// which action (section 4.9).
//
// Note [Nodes]. Node 0 is doing nothing. The others are the events of the device ops in order: what
// an op allocates, reads and writes (updates are writes), and what is freed after it. The times are
// those of an iteration without stalls. Each gap worth an action has its offload node at the access
// that begins it, and its remove node at the next event without an action; a gap that wraps begins
// at the tensor's last access. An action node has the features of the tensor it is about, which for
// remove nodes is not the one of the event: else the network could not know what they free. Node 0
// is joined to the first event.
#pragma once

#include <span>
#include <vector>

#include "cost/machine.h"
#include "ir/access_index.h"
#include "planners/published/dqn/q_network.h"
#include "schedule/strategy.h"

namespace tidepool::dqn {

enum class ActionKind : std::uint8_t { nothing, offload, remove };

/// A gap the agent may decide on.
struct ActionGap {
  GapId gap = kNone;
  bool may_offload = false;
  bool may_remove = false;
  Nanos recompute_time{};  ///< of the ops that run again, everything else kept
};

struct NodeEvent {
  OpId op = kNone;      ///< whose event it is; kNone: node 0
  bool at_end = false;  ///< when the op is over
  ActionKind action = ActionKind::nothing;
  std::int32_t gap = kNone;  ///< the action's: into the list of ActionGaps
};

struct GapNodes {
  std::int32_t offload = kNone;
  std::int32_t remove = kNone;
};

struct IterationEvents {
  EventGraph graph;
  std::vector<NodeEvent> nodes;
  std::vector<GapNodes> of_gap;  ///< per ActionGap
};

/// One algorithm per op.
IterationEvents iteration_events(const Program& program, const AccessIndex& index,
                                 const Machine& machine, std::span<const std::int32_t> algorithms,
                                 std::span<const ActionGap> gaps);

/// Gaps of tensors worth moving over at least one op whose load with everything kept exceeds
/// `load`, in the order in which they begin.
std::vector<ActionGap> action_gaps(const Program& program, const AccessIndex& index,
                                   const Machine& machine,
                                   const std::vector<std::int32_t>& algorithms, Bytes load,
                                   bool may_offload, bool may_remove);

}  // namespace tidepool::dqn
