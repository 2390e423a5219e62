// What Capuchin chooses for one program, under one limit; see Note [Capuchin] in capuchin.h.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <vector>

#include "base/stop.h"
#include "lower/lower.h"
#include "planners/planner_context.h"
#include "planners/toolkit/peak_curve.h"
#include "planners/toolkit/recomputation.h"
#include "planners/toolkit/stabbing_tree.h"

namespace tidepool {

/// Times at which a link is busy with copies.
class CopyLane {
 public:
  /// When a copy has to start that is over when it is due, and does not overlap with others.
  [[nodiscard]] Nanos latest_start(Nanos due, Nanos duration) const;
  /// When a copy can start that may from a time on, and does not overlap with others.
  [[nodiscard]] Nanos earliest_start(Nanos ready, Nanos duration) const;
  void reserve(Nanos start, Nanos duration);

 private:
  std::map<Nanos, Nanos> busy_;  ///< start -> end; they neither overlap nor touch
};

class CapuchinPolicy {
 public:
  /// `lowering` must outlive the policy. One algorithm per op.
  CapuchinPolicy(const Lowering& lowering, const MayDecide& may,
                 std::vector<std::int32_t> algorithms);

  /// No recomputation in choices to come.
  void swap_only() { may_.recompute = false; }

  /// Chooses until the load's peak is at most `limit`; false where nothing is left to choose, or
  /// when asked to stop.
  bool choose(Bytes limit, const Stop& stop);

  /// What was chosen, with triggers for copies in that keep the load within `limit`, as far as it
  /// is known. `earlier`: per gap, how much earlier than it seems necessary a copy in should start.
  Strategy strategy(Bytes limit, std::span<const Nanos> earlier);

  /// Swaps whose copies in are too late where the device waits so long before each op. Of the last
  /// strategy.
  [[nodiscard]] std::vector<GapId> late(std::span<const Nanos> waits) const;
  /// The op before which a gap's copy in has to be over; kNone: there is none. Of the last
  /// strategy.
  [[nodiscard]] OpId reader(GapId gap) const { return need_[at(gap)]; }
  [[nodiscard]] Nanos in_time(GapId gap) const;

  [[nodiscard]] std::span<const GapId> swaps() const { return swaps_; }
  [[nodiscard]] std::span<const GapId> recomputed() const { return recomputed_; }

 private:
  /// Per candidate; what its recomputation takes is known until one of its sources is recomputed.
  struct Candidate {
    GapId gap = kNone;
    bool known = false;
    bool possible = false;
    Nanos recompute_time{};
    std::vector<TensorId> sources;
  };
  enum class Choice : std::uint8_t { swap, recompute };

  [[nodiscard]] const Gap& gap(GapId id) const { return index_.gaps()[at(id)]; }
  [[nodiscard]] static std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }
  [[nodiscard]] Bytes bytes(GapId id) const;
  [[nodiscard]] Nanos out_time(GapId id) const;
  [[nodiscard]] Nanos free_time(GapId id) const;
  [[nodiscard]] Nanos exposed_time(GapId id) const;
  [[nodiscard]] Nanos out_start(GapId id) const;
  [[nodiscard]] Nanos in_start(GapId id) const;
  void reserve(GapId id);
  void begin();
  bool take_hidden_swap(OpId op);
  bool take_least_exposed(OpId op);
  void take(std::int32_t candidate, Choice choice);
  void find_recomputation(Candidate& candidate);
  [[nodiscard]] OpId trigger(GapId id, OpId need, Nanos start, Bytes limit,
                             std::vector<Bytes>& load) const;

  const Lowering& lowering_;
  const Program& program_;
  const AccessIndex& index_;
  MayDecide may_;
  std::vector<std::int32_t> algorithms_;
  std::vector<Nanos> starts_;
  std::vector<Bytes> load_;
  Recomputation recomputation_;
  std::vector<char> from_host_;  ///< per gap: the host made the value
  // Of one choice.
  std::vector<Candidate> candidates_;
  StabbingTree hidden_;  ///< candidates by free time, where it is not negative
  StabbingTree all_;
  PeakCurve curve_;
  CopyLane outs_;  ///< copies out; of a link that is not duplex all copies
  CopyLane ins_;   ///< copies in
  std::optional<StrategyBuilder> builder_;
  std::vector<GapId> swaps_;
  std::vector<GapId> recomputed_;
  std::vector<OpId> need_;  ///< per gap, of the last strategy
};

}  // namespace tidepool
