// First fit in the orders that other systems use beside size. None of them wins everywhere, so all
// are tried (SmartPool's own order is in first_fit.h and best_fit.h).
#pragma once

#include "pack/pack.h"

namespace tidepool {

/// Longest lifetime first (the rule of Sekiyama, Imai, Negishi and Imai, "Profile-guided memory
/// optimization for deep neural networks", arXiv:1804.10001); on a conflict graph, which has no
/// lifetimes, most conflicts first.
Packing pack_by_duration(const PackProblem& problem);

/// Largest product of size and duration first.
Packing pack_by_area(const PackProblem& problem);

/// Most bytes in conflict with it first: what sits in the way of most goes to the bottom.
Packing pack_by_conflicts(const PackProblem& problem);

/// Buffers alive at the highest load first, large ones first among them, then those of lower loads
/// (close to "greedy by breadth" of Pisarchyk and Lee, "Efficient memory management for deep neural
/// net inference", arXiv:2001.03288). On a conflict graph the load of a buffer is the bytes alive
/// at its begin.
Packing pack_by_load(const PackProblem& problem);

/// The keys of the orders above, one for each buffer; high keys go first.
std::vector<double> duration_keys(const PackProblem& problem);
std::vector<double> area_keys(const PackProblem& problem);
std::vector<double> conflict_keys(const PackProblem& problem);
std::vector<double> load_keys(const PackProblem& problem);

}  // namespace tidepool
