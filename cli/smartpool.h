// SmartPool's packing problem of a recorded iteration.
#pragma once

#include "pack/pack.h"
#include "trace/block_lives.h"

namespace tidepool::cli {

/// Lifetimes of a cycle of `cycle` events as buffers; those that share a moment conflict. Plain
/// lifetimes where none goes over the end of the cycle.
PackProblem pack_problem(std::span<const CyclicLifetime> lives, std::int32_t cycle);

}  // namespace tidepool::cli
