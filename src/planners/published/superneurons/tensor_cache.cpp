#include "planners/published/superneurons/tensor_cache.h"

#include <algorithm>
#include <list>
#include <optional>

#include "base/at.h"

namespace tidepool {
namespace {

/// The list of the paper's algorithm 2: tensors on the device, most recently used first. Those that
/// the running op accesses are locked.
class Cache {
 public:
  Cache(const Program& program, const AccessIndex& index, const std::vector<char>& cached,
        Bytes alignment)
      : program_(program),
        index_(index),
        cached_(cached),
        alignment_(alignment),
        next_access_(program.tensors.size(), 0),
        away_(program.tensors.size(), 0) {}

  /// Accessed tensors are on the device from now on, and most recently used.
  void access(OpId op, CacheRun& run) {
    for (const Access& a : program_.ops[at(op)].accesses) {
      if (cached_[at(a.tensor)] == 0) continue;
      if (away_[at(a.tensor)] != 0) {
        away_[at(a.tensor)] = 0;
        away_bytes_ -= bytes(a.tensor);
        ++run.fetches;
      }
      ++next_access_[at(a.tensor)];
      used_.remove(a.tensor);
      used_.push_front(a.tensor);
    }
  }

  /// The last of the list that may leave before `op`, which it then does. Its gap.
  std::optional<GapId> evict(OpId op) {
    for (auto it = used_.rbegin(); it != used_.rend(); ++it) {
      const auto gap = open_gap(*it, op);
      if (!gap) continue;
      away_[at(*it)] = 1;
      away_bytes_ += bytes(*it);
      used_.erase(std::next(it).base());
      return gap;
    }
    return std::nullopt;
  }

  [[nodiscard]] Bytes away_bytes() const { return away_bytes_; }

 private:
  [[nodiscard]] Bytes bytes(TensorId t) const {
    return align_up(program_.tensors[at(t)].bytes, alignment_);
  }
  /// The gap the tensor is in while `op` runs, if it is one in which something is decided.
  [[nodiscard]] std::optional<GapId> open_gap(TensorId t, OpId op) const {
    const auto gaps = index_.gaps(t);
    const std::size_t i = next_access_[at(t)] - 1;
    if (i >= gaps.size()) return std::nullopt;
    const Gap& gap = gaps[i];
    const bool open = gap.from < op && op < gap.to && !gap.wraps;
    if (!open || gap.kind != GapKind::device || gap.dead) return std::nullopt;
    return index_.first_gap(t) + static_cast<GapId>(i);
  }

  const Program& program_;
  const AccessIndex& index_;
  const std::vector<char>& cached_;
  Bytes alignment_;
  std::list<TensorId> used_;
  std::vector<std::size_t> next_access_;  ///< per tensor: accesses so far
  std::vector<char> away_;
  Bytes away_bytes_ = 0;
};

}  // namespace

CacheRun run_tensor_cache(const Program& program, const AccessIndex& index,
                          std::span<const Bytes> load, const std::vector<char>& cached, Bytes limit,
                          Bytes alignment, StrategyBuilder& builder) {
  CacheRun run;
  Cache cache(program, index, cached, alignment);
  for (OpId op = 0; op < static_cast<OpId>(program.ops.size()); ++op) {
    cache.access(op, run);
    if (program.ops[at(op)].place == OpPlace::host) continue;
    while (load[at(op)] - cache.away_bytes() > limit) {
      const auto gap = cache.evict(op);
      if (!gap) {
        run.fits = false;
        break;
      }
      ++run.evictions;
      builder.away(*gap);
      CopyHint hint;
      hint.gap = *gap;
      hint.out_trigger = op;
      hint.out_barrier = op;
      hint.in_trigger = index.gaps()[at(*gap)].to;
      builder.hint(hint);
    }
  }
  return run;
}

}  // namespace tidepool
