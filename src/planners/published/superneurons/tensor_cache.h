// TensorCache: SuperNeurons' cache of tensors in device memory, run over a program.
#pragma once

#include <vector>

#include "planners/toolkit/strategy_builder.h"

namespace tidepool {

/// What an iteration with the cache does to the gaps.
struct CacheRun {
  int evictions = 0;
  int fetches = 0;
  bool fits =
      true;  ///< false: at some op all that may leave was gone, and the load above the limit
};

/// Walks the program and decides gaps where what an op allocates would lift the load above `limit`:
/// of the tensors in `cached` (one flag a tensor) the least recently used one that the op does not
/// access leaves, until there is room. It comes back when an op accesses it. `load`: bytes at each
/// op when everything stays (load_profile), with the algorithms that run.
CacheRun run_tensor_cache(const Program& program, const AccessIndex& index,
                          std::span<const Bytes> load, const std::vector<char>& cached, Bytes limit,
                          Bytes alignment, StrategyBuilder& builder);

}  // namespace tidepool
