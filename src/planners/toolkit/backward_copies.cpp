#include "planners/toolkit/backward_copies.h"

#include <algorithm>

#include "base/at.h"

namespace tidepool {
namespace {

/// Positions are ops of two iterations: that in which a gap begins, and the one after.
class BackwardCopies {
 public:
  BackwardCopies(const SwapCandidates& candidates, std::span<const SwapPick> picks, Bytes limit)
      : c_(candidates),
        ops_(static_cast<std::int32_t>(candidates.program().ops.size())),
        limit_(limit),
        previous_(-ops_) {
    for (const SwapPick& pick : picks) gaps_.push_back(pick.gap);
    std::stable_sort(gaps_.begin(), gaps_.end(),
                     [this](GapId a, GapId b) { return gap(a).to < gap(b).to; });
    load_ = c_.load_without(gaps_);
  }

  std::vector<CopyHint> run() {
    const std::vector<Nanos> starts = latest_starts();
    std::vector<CopyHint> hints;
    for (std::size_t i = 0; i < gaps_.size(); ++i) {
      CopyHint& hint = hints.emplace_back();
      hint.gap = gaps_[i];
      hint.in_trigger = trigger(gaps_[i], starts[i]) % ops_;
    }
    return hints;
  }

 private:
  [[nodiscard]] const Gap& gap(GapId g) const { return c_.index().gaps()[at(g)]; }
  [[nodiscard]] std::int32_t end_of(const Gap& g) const { return g.to + (g.wraps ? ops_ : 0); }
  [[nodiscard]] Nanos start(std::int32_t position) const {
    return c_.start(position % ops_) + (position < ops_ ? Nanos{0} : c_.compute_time());
  }
  [[nodiscard]] bool may_trigger(std::int32_t position) const {
    return c_.program().ops[at(position % ops_)].place == OpPlace::device;
  }

  /// Per gap, in the iteration in which it ends. Copies behind the iteration's end are those at its
  /// start, of the next iteration.
  [[nodiscard]] std::vector<Nanos> latest_starts() const {
    std::vector<Nanos> starts(gaps_.size());
    Nanos next = Nanos::max();
    for (int round = 0; round < 2 && !gaps_.empty(); ++round) {
      for (std::size_t i = gaps_.size(); i-- > 0;) {
        next = std::min(next, c_.start(gap(gaps_[i]).to)) - c_.in_time(gaps_[i]);
        starts[i] = next;
      }
      next += c_.compute_time();
    }
    return starts;
  }

  std::int32_t trigger(GapId id, Nanos latest_start) {
    const Gap& g = gap(id);
    const std::int32_t end = end_of(g);
    const Nanos time = latest_start + (g.wraps ? c_.compute_time() : Nanos{0});
    const Bytes bytes = c_.aligned_bytes(id);
    const std::int32_t shift = g.wraps ? ops_ : 0;
    const std::int32_t least = std::max(g.from + 1, previous_ + shift);
    std::int32_t from = end;
    for (std::int32_t p = end - 1; p >= least; --p) {
      if (load_[at(p % ops_)] + bytes > limit_) break;
      if (!may_trigger(p)) continue;
      from = p;
      if (start(p) <= time) break;
    }
    for (std::int32_t p = from; p < end; ++p) load_[at(p % ops_)] += bytes;
    previous_ = from - shift;
    return from;
  }

  const SwapCandidates& c_;
  std::int32_t ops_;
  Bytes limit_;
  std::vector<GapId> gaps_;  ///< by the op that ends them
  std::vector<Bytes> load_;  ///< with the tensors that are back early so far
  std::int32_t previous_;    ///< trigger of the copy before, in the iteration in which gaps end
};

}  // namespace

std::vector<CopyHint> copies_in_backwards(const SwapCandidates& candidates,
                                          std::span<const SwapPick> picks, Bytes limit) {
  return BackwardCopies(candidates, picks, limit).run();
}

}  // namespace tidepool
