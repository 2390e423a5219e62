// Strategy: what a planner decides. `lower` turns it into a plan.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/access_index.h"

namespace tidepool {

enum class Decision : std::uint8_t {
  keep,
  swap,       ///< copy out after the gap's first access, copy in before its second
  drop,       ///< release; the host still holds this version; copy in before the second access
  recompute,  ///< release; run the producing ops again before the second access
};

const char* to_string(Decision decision);

/// Fixes what `lower` would otherwise choose for one gap's copies (published baselines do).
struct CopyHint {
  GapId gap = kNone;
  std::optional<OpId> out_trigger;     ///< the copy out is issued right before this op
  std::optional<OpId> in_trigger;      ///< the copy in is issued right before this op
  std::optional<OpId> out_barrier;     ///< this op waits for the copy out
  std::optional<OpId> in_barrier;      ///< this op waits for the copy in
  std::optional<Bytes> device_offset;  ///< where the copy in places the tensor
};

struct Strategy {
  std::string planner;
  std::int64_t sub_batch = 0;            ///< samples a round; the program's own sub-batch
  std::vector<Decision> gaps;            ///< one per gap of the program's AccessIndex
  std::vector<std::int32_t> algorithms;  ///< one per op
  std::vector<CopyHint> hints;
  std::vector<std::string> reasons;  ///< empty, or one per gap: why, for --explain
};

/// Everything kept, with the given algorithms.
Strategy keep_everything(const Program& program, const AccessIndex& index,
                         std::vector<std::int32_t> algorithms);

}  // namespace tidepool
