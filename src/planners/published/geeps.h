// GeePS: a double buffer through which each op's tensors stream, and tensors pinned beside it.
//
// Source: Cui, Zhang, Ganger, Gibbons, Xing: GeePS: Scalable Deep Learning on Distributed GPUs with
// a GPU-Specialized Parameter Server, EuroSys 2016, sections 3.3 and 4.4 (managing data in GPU and
// CPU memory; swapping by the op sequence that a virtual iteration gathers).
//
// Note [GeePS]. Each op's tensors are on the device while it runs; those of the next op are copied
// in meanwhile, those of the op before are copied out: the buffer takes twice the largest set that
// one op accesses. What memory is left is for tensors that are pinned, which never leave. They are
// picked greedily by the current peak: of the op whose unpinned tensors are the most, the largest
// that can be pinned, since that also makes the buffer smaller; then of the other ops, those with
// the most first.
//
// What the paper leaves open, or this system sees otherwise:
// - Layers of the paper are ops here, with their workspaces.
// - A pinned tensor takes its bytes while it is live, not all the time.
// - What the next op accesses too stays in the buffer.
// - Weights and optimizer state stream like all else; parameter servers are not part of this.
// - Tensors that may not move (Tensor::pinned) are pinned first. Those whose home is the device
//   stream like others, but take their bytes over the iteration's end.
// - Addresses take more than the load: where they do not fit, what buffer and pinned tensors may
//   take goes down from the budget by what they exceed it, and where that ends with nothing by 2 %
//   of the budget at a time.
// - Where buffer and pinned tensors exceed the budget GeePS cannot train; the streaming schedule,
//   which is the same without the second half of the buffer, takes its place, and a note says so.
#pragma once

#include "planners/planner.h"

namespace tidepool {

std::unique_ptr<Planner> make_geeps();

}  // namespace tidepool
