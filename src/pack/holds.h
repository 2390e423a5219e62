// What follows from holds: their conflicts as a graph, and a bound.
#pragma once

#include <optional>

#include "pack/pack.h"

namespace tidepool {

/// The pairs that conflict, counted in time n log n. A pair that conflicts both within a cycle and
/// over its end may count twice.
std::int64_t most_conflicts(std::span<const Hold> holds);

/// The same problem as a conflict graph. Neighbours ascend.
PackProblem hold_graph(const PackProblem& problem);
/// None where it is asked to stop.
std::optional<PackProblem> hold_graph(const PackProblem& problem, const Stop& stop);

/// The most bytes held at one position whatever begins next: no packing is smaller.
Bytes held_at_once(const PackProblem& problem);

}  // namespace tidepool
