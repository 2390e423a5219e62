// Recomputation: which gaps can be recomputed, and what runs again for one.
#pragma once

#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "planners/toolkit/strategy_builder.h"

namespace tidepool {

/// Asks what `expand` would do, for one gap at a time, without expanding the whole program: values
/// that the device or the host still has are sources, others are made again by the ops that made
/// them, and so on backwards.
class Recomputation {
 public:
  /// Both must outlive this.
  Recomputation(const Program& program, const AccessIndex& index)
      : program_(program), index_(index) {}

  /// The ops that run again before the gap's end, in order, if it is recomputed and all other gaps
  /// are as the strategy has them. Of those that are recomputed too, none counts as done already: a
  /// chain may be shorter in the end. Nothing where the gap cannot be recomputed, where the
  /// host has its value (it would be copied in), or where more than `longest` ops would have to
  /// run. Copies out are taken to leave when their gaps begin.
  std::optional<std::vector<OpId>> chain(GapId gap, const Strategy& strategy,
                                         std::size_t longest = kLongest);
  static constexpr std::size_t kLongest = 2000;

  /// Of the last chain: tensors whose values it found where they were.
  [[nodiscard]] std::span<const TensorId> sources() const { return sources_; }

  /// Of a chain.
  [[nodiscard]] Nanos time(std::span<const OpId> chain, const Strategy& strategy) const;

 private:
  using Value = std::pair<TensorId, std::int32_t>;  ///< and its version
  /// The versions a tensor has before an op, or kNone.
  struct Held {
    std::int32_t device = kNone;
    std::int32_t host = kNone;
  };
  [[nodiscard]] Held held(TensorId tensor) const;
  [[nodiscard]] Decision decision(GapId gap) const;
  [[nodiscard]] bool away(GapId gap) const;
  bool bring(const Value& value);
  bool bring_changeable(const Value& value);
  bool run_again(const Value& value);

  const Program& program_;
  const AccessIndex& index_;
  // Of the last chain.
  const Strategy* strategy_ = nullptr;
  GapId gap_ = kNone;
  OpId before_ = kNone;  ///< its end
  std::vector<OpId> chain_;
  std::set<Value> made_;
  std::vector<TensorId> sources_;
  std::size_t depth_ = 0;
  std::size_t longest_ = kLongest;
};

/// A gap whose recomputation is not possible beside the other decisions leaves the device
/// (`leaves`) or stays. Afterwards `expand` refuses none. Returns how many there were.
std::size_t take_back_impossible(const Program& program, const AccessIndex& index, bool leaves,
                                 StrategyBuilder& builder);

/// Per gap that is away: the op before which its value has to be back, which is not the one that
/// ends the gap where recomputations read it earlier; kNone for other gaps, and for
/// all where `expand` refuses the strategy.
std::vector<OpId> needed_before(const Program& program, const AccessIndex& index,
                                const Strategy& strategy);

}  // namespace tidepool
