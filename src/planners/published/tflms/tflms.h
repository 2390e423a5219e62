// TFLMS: edges of the graph that are long by topological order are swapped.
//
// Source: Le, Imai, Negishi, Kawachiya: TFLMS: Large Model Support in TensorFlow by Graph
// Rewriting, arXiv:1807.02037, 2018, section 4 (swap-out and swap-in operations, control
// dependencies, strategies); parameters and their tuning by simulation as in version 2 of the
// authors' program.
//
// Note [TFLMS]. Every op has a level, one above the highest of those whose outputs it reads. An
// edge from an op to a reader whose level is higher by more than a threshold goes over the host:
// the value leaves behind the reader before, and is copied in for the reader, or for several of
// them whose levels are no more than `group` apart. A copy in is triggered when the ops `ahead`
// levels below its reader run. Autotuning simulates: the largest threshold that fits is looked for,
// for each group and each ahead that is tried, and the fastest of these is taken.
//
// What the paper leaves open, or this system sees otherwise:
// - Ops run in program order, which levels do not change. A trigger is the first op of those that
//   run directly before the reader and are no more than `ahead` levels below it.
// - Variables (persistent tensors) are no edges.
// - Tuned are groups of 0, 2 and 8 levels and copies 1, 2, 4, 8 and 16 levels ahead; thresholds by
//   bisection. Where the addresses do not fit, all is tuned again for less memory.
// - Recordings whose ops access one tensor each have no levels to speak of: nothing is swapped in
//   time there.
// - Synchronous modes of version 2 are left out: copies are asynchronous.
// - Where nothing fits the streaming schedule takes its place, and a note says so.
#pragma once

#include "planners/planner.h"

namespace tidepool {

std::unique_ptr<Planner> make_tflms();

}  // namespace tidepool
