// Pattern: one iteration of a program that uses a Session, as steps to follow and as a Program to
// plan.
//
// Note [Where an iteration begins]. A period of calls can begin at any of them. It begins where the
// fewest bytes are live that were allocated in the iteration before: the fewest tensors then live
// across its boundary. Blocks that are there before and after are persistent tensors. A block that
// was allocated in one iteration and is freed in the next is one persistent tensor together with
// its successor. Where both are accessed while both are live, the successor has a tensor of its own
// until the older one is freed; then a move ("carry") copies it to the persistent one.
//
// Note [Lives in plans]. A plan may reuse the bytes of a tensor behind its last access, while the
// program may still hold the block and, where it leaves the plan, read it. So the bytes of a tensor
// stay taken (Tensor::released_at) until the last op before its block is freed, and what stands
// behind that op in the schedule is issued when the frees that follow the op have come. For the
// same reason an op that overwrites a block which has a value updates its tensor: otherwise the
// plan could give the old value up between its last access and the op.
//
// Note [Fixed blocks]. The program may use a fixed block at any time by its address, of which
// nothing is told. One that is there before and after an iteration is no tensor: it lies where it
// lies, above what plans get. One that an iteration allocates and frees is a pinned tensor, which
// an op of no function writes at its malloc and another reads at its free: the plan leaves its
// bytes alone in between. What reads a fixed block is never run again: it may have other values.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "ir/program.h"
#include "session/call_log.h"

namespace tidepool {

struct Pattern {
  struct Step {
    CallKind kind = CallKind::malloc;
    CallToken token = 0;
    std::string name;               ///< of an op
    std::int32_t log_name = kNone;  ///< the same, in the log that the pattern was found in
    OpShape shape;                  ///< of an op
    /// Of an op; of the malloc and the free of a pinned tensor, see Note [Fixed blocks].
    OpId op = kNone;
    /// By block of the call. Of a malloc: what the block holds from then on; kNone: it is never
    /// accessed. Of an op kNone: a fixed block that is no tensor.
    std::vector<TensorId> tensors;
    bool outside = false;  ///< of an op: there is such a block
    /// Of a free: then this op copies `carried` to `carried_to`, whose block it becomes.
    OpId carry = kNone;
    TensorId carried = kNone;
    TensorId carried_to = kNone;
    /// What follows in a schedule may be issued: no free comes before the next op.
    bool ends_frees = false;
  };
  std::vector<Step> steps;
  Program program;
  std::uint64_t calls_hash = 0;  ///< the same for the same iteration from another call on
};

/// The tokens of some calls, whatever their order.
std::uint64_t unordered_hash(std::span<const LoggedCall> calls);

/// Of the last whole iterations that the log has. `bad_input`: none that can be planned, and why.
Result<Pattern> make_pattern(const CallLog& log, const CallLog::Period& period);

/// Which life each persistent tensor is in after the last calls, as many as there are steps, if
/// they were one iteration of the pattern. Of other tensors: kNone.
std::optional<std::vector<LifeId>> bind(const Pattern& pattern, const CallLog& log);

/// How many of the steps of an iteration the last calls are, if there was a whole iteration before
/// them; none: they are none.
std::optional<std::size_t> phase_of(std::span<const Pattern::Step> steps, const CallLog& log);

/// The call at which an iteration begins, so that two whole periods of the log are behind it or one
/// is and one before. See Note [Where an iteration begins].
std::size_t iteration_begin(const CallLog& log, const CallLog::Period& period);

}  // namespace tidepool
