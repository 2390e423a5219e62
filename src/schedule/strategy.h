// Strategy: what a planner decides. `lower` turns it into a plan.
#pragma once

#include <optional>
#include <span>
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

/// Fixes what `lower` would otherwise choose for one gap's copies (published baselines do). Ops are
/// device ops. In a gap that wraps, an op after the gap's first is meant in the iteration in which
/// the gap begins, any other in the next one.
struct CopyHint {
  GapId gap = kNone;  ///< swapped, or dropped (which has no copy out)
  /// The copy out is issued right before this op: in the gap, or the op that ends it; of a gap that
  /// wraps, in the iteration in which it begins.
  std::optional<OpId> out_trigger;
  /// The copy in is issued right before this op, in the same range, after the copy out; it starts
  /// when that op could, or later where memory is not free yet.
  std::optional<OpId> in_trigger;
  std::optional<OpId> out_barrier;     ///< this op, in the same range, waits for the copy out
  std::optional<OpId> in_barrier;      ///< and this one, in the iteration of the gap's end, for the
                                       ///< copy in
  std::optional<Bytes> device_offset;  ///< where the copy in places the tensor
  /// The trigger of the copy in says its place in the order alone: it starts as soon as its memory
  /// and the link are free, though that is before the op could start.
  bool in_early = false;

  bool operator==(const CopyHint&) const = default;
};

struct Strategy {
  std::string planner;
  std::int64_t sub_batch = 0;            ///< samples a round; the program's own sub-batch
  std::vector<Decision> gaps;            ///< one per gap of the program's AccessIndex
  std::vector<std::int32_t> algorithms;  ///< one per op
  std::vector<CopyHint> hints;
  std::vector<std::string> reasons;  ///< empty, or one per gap: why, for --explain
};

/// The same decisions for gaps, and the same hints.
inline bool decide_the_same(const Strategy& a, const Strategy& b) {
  return a.gaps == b.gaps && a.hints == b.hints;
}

/// Everything kept, with the given algorithms.
Strategy keep_everything(const Program& program, const AccessIndex& index,
                         std::vector<std::int32_t> algorithms);

/// Makes drops of swaps of one tensor: a gap that is away (swapped or dropped) is dropped where the
/// host holds its value already, from an earlier gap or because a host op made it, or where nobody
/// reads it again; it is swapped otherwise: a value is copied out once. The other decisions stay.
void derive_drops(const AccessIndex& index, TensorId tensor, std::span<Decision> decisions);

}  // namespace tidepool
