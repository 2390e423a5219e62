// A program as a recording: what a framework that runs it op by op would have asked its allocator
// for. The way back from trace_program.h.
#pragma once

#include <span>

#include "trace/iteration.h"

namespace tidepool {

struct ProgramRecording {
  Recording recording;
  Iteration iteration;  ///< the first; all events are those of whole iterations
};

/// `iterations` >= 2 repetitions. Persistent tensors are blocks that were there before. Others are
/// allocated right before the first device op that accesses them and freed right after the last
/// one, each with the workspace of its op, in the order of the op's accesses. Events have the time
/// at which their op starts (frees: ends) when nothing stalls, and the op's name. Host ops and
/// tensors that only they access leave no events. `algorithms`: one per op.
ProgramRecording record_program(const Program& program, std::span<const std::int32_t> algorithms,
                                int iterations);

}  // namespace tidepool
