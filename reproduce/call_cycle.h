// The mallocs, frees and accesses of a recorded iteration as a cycle that can go on for ever.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "trace/block_lives.h"

namespace tidepool::reproduce {

/// Blocks are lives of the iteration (trace/block_lives.h).
struct CallCycle {
  struct Step {
    EventKind kind = EventKind::malloc;
    std::size_t block = 0;
    std::string op;  ///< of an access
  };
  std::vector<Bytes> bytes;         ///< by block
  std::vector<std::size_t> before;  ///< blocks that are there when an iteration begins
  std::vector<Step> steps;
  /// At the end of an iteration the first becomes the second.
  std::vector<std::pair<std::size_t, std::size_t>> becomes;
  std::int64_t mallocs = 0;

  [[nodiscard]] Bytes all_bytes() const;
};

CallCycle call_cycle(const Recording& recording, const Iteration& iteration);

/// Runs iterations on whatever has `malloc(block, bytes)`, `free(block)` and `access(step)`, where
/// blocks are places that `rename(from, to)` moves.
template <class Server>
class CycleRun {
 public:
  CycleRun(const CallCycle& cycle, Server& server) : cycle_(cycle), server_(server) {
    for (const std::size_t block : cycle.before) server.malloc(block, cycle.bytes[block]);
    for (const std::size_t block : cycle.before) {
      server.access({EventKind::write, block, "before the recording"});
    }
  }
  void iteration() {
    for (const CallCycle::Step& step : cycle_.steps) {
      if (step.kind == EventKind::malloc) {
        server_.malloc(step.block, cycle_.bytes[step.block]);
      } else if (step.kind == EventKind::free) {
        server_.free(step.block);
      } else {
        server_.access(step);
      }
    }
    server_.rename(cycle_.becomes);
  }

 private:
  const CallCycle& cycle_;
  Server& server_;
};

}  // namespace tidepool::reproduce
