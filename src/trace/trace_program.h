// A recorded iteration as a Program: the workload that planners, simulator and reports take.
//
// Note [Trace ops]. A recording says when each block is accessed. Accesses that belong together
// become one op, so that what a kernel needs at the same time is on the device at the same time.
// Where the recorder named the ops, all accesses of one run of an op do. Where it did not, an op is
// a run of accesses that ends
//   - at a malloc or a free: the load is the same all through an op;
//   - before a block is accessed that the op has accessed already (reading and then writing the
//     same block is one update; a `use` only marks a block and ends nothing);
//   - before a write that would mix persistent tensors with others (a rule of Program).
// The time of an event is the time to the next one, on average over the recorded iterations. An op
// has the time of its accesses and of the mallocs and frees right before it.
//
// Note [Trace tensors]. A tensor is a block. Its first access writes it, whatever the recorder
// says: there was nothing to read. A later write is an update, since it need not overwrite every
// byte. Blocks that are there before and after are persistent.
//
// A block's tensor lives from its first to its last access. It was taken from malloc to free, but
// no byte of it mattered before and after. So the peak load of the program is at most that of the
// recording (TraceProgram::recorded_peak). It is the same when at the recorded peak no block waits
// for its first access or its free. On the measured VGG16 trace every free follows directly on an
// access of its block (the recorder logs one), and the malloc that makes the peak is followed by
// the access that begins its op: the peak is the published 679,197,000 B.
//
// Note [Trace boundary]. Gradients of the measured trace are allocated in one iteration and freed
// in the next, after their successors were allocated: for a while there are two of each. Such a
// block is two tensors. The younger lives from its first access to the moment of the free, when a
// move ("carry") copies it to the older, which is persistent. That is the recorded load at every
// moment, and the older one keeps its gap over the iteration boundary. A block that outlives its
// iteration by less, or by whole iterations, is cut at the boundary: an op without time at the end
// keeps it until then, a move at the start makes it. (As a persistent tensor it would count all the
// time.)
//
// Note [Moves]. The recorded training did not move such blocks: while both generations are there,
// the younger is at another address than the older, and there it stays. So no iteration is placed
// like the one before. A plan of one iteration, which ends where it began, has to move them. Its
// moves are ops as long as a device copy, which reads and writes every byte; the iteration is that
// much longer than the recorded one. Placing two iterations, in which the generations alternate
// between two addresses, does without: lifetimes_of_two_iterations (block_lives.h).
//
// Bytes that no op accesses are not in the program. They are `resident`: whoever plans takes them
// off the budget first.
#pragma once

#include "cost/machine.h"
#include "trace/block_lives.h"

namespace tidepool {

struct TraceProgram {
  Program program;
  /// Device bytes taken all the time that no op accesses.
  Bytes resident = 0;
  /// Largest number of live bytes of the recorded iteration, resident ones included.
  Bytes recorded_peak = 0;
  /// Bytes that an iteration moves on the device, and the part of its time that takes (Note
  /// [Moves]): none in a recording without times.
  Bytes moved = 0;
  Nanos move_time{};

  /// Of an iteration without a budget, moves included.
  [[nodiscard]] Nanos time() const;
};

/// No op can be recomputed: a recording does not say how. Batch and sub-batch are 1. Without times
/// in the recording the ops have none. `device` has the bandwidth of moves. Fails
/// (ErrorCode::bad_input) when nothing is accessed in the iteration.
Result<TraceProgram> trace_program(const Recording& recording, const Iteration& iteration,
                                   const ComputeModel& device);

/// Finds the iteration first; fails (ErrorCode::bad_input) when there is none.
Result<TraceProgram> trace_program(const Recording& recording, const ComputeModel& device);

}  // namespace tidepool
