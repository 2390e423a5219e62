// The packing search: never worse than the best greedy order, better the longer it runs, and it
// says when no packing can be smaller.
//
// Holds are searched as a graph, where at most 16 million pairs conflict; others are packed once.
// With a target, ejections go before the exact search and get more time.
#pragma once

#include <limits>
#include <string>

#include "base/progress.h"
#include "base/stop.h"
#include "base/time.h"
#include "pack/pack.h"

namespace tidepool {

struct SearchOptions {
  Nanos time_limit = from_seconds(10);
  std::uint64_t seed = 0;
  /// A packing of at most this footprint is good enough; 0: only the best is.
  Bytes target = 0;
  /// Rounds of the portfolio; each works up to four times as long as the one before. For a result
  /// that does not depend on the machine's speed set this and no time limit.
  int rounds = std::numeric_limits<int>::max();
  Stop stop;  ///< asked every few milliseconds
  /// The caller has a packing: asked to stop early enough, there is none. Its footprint is then the
  /// largest that can be written.
  bool may_have_none = false;
  ProgressSink* progress = nullptr;
};

struct SearchResult {
  Packing packing;
  /// No packing is smaller: the largest clique found, or more where the exact search proved it.
  Bytes lower_bound = 0;
  bool proven_optimal = false;  ///< the footprint is the lower bound
  std::string found_by;         ///< a packer's name or a method
  Nanos time{0};
};

/// Note [Packing portfolio]
/// All packers (and where not one of them gets done in time, sweep.h); then rounds of three
/// methods: squeaky wheels (squeaky_wheel.h) from the orders by load and by size; the exact search
/// (branch_and_bound.h; problems of some thousand buffers, none of them fixed) at the lower bound
/// and at capacities that halve the distance to the best packing; ejections (ejection_search.h).
/// Every round lets the last two work longer. Which of them finds the best packing differs: exact
/// search on small and tight problems, squeaky wheels on large ones whose load has one narrow peak,
/// ejections in between. With a target all aim at it; then ejections go before the exact search and
/// begin with more steps. Buffers that conflict with all others are placed below everything and are
/// not searched for.
///
/// Uses one thread. The result is a function of problem, seed and rounds unless the time limit or
/// `cancelled` ends the search: then it is the best packing found until then. So a search that ends
/// with a proof gives the same packing every time.
SearchResult search_packing(const PackProblem& problem, const SearchOptions& options);

}  // namespace tidepool
