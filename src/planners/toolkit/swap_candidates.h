// Which gaps AutoSwap swaps: candidates, priority scores, and the order in which gaps are picked
// (SmartPool/AutoSwap, sections IV-A to IV-D).
//
// Note [Pick order]. Picking goes on until the peak of the load is at most the limit. Nothing else
// depends on the limit, so what is picked under a limit is the beginning of one order, the same
// for all limits: candidates by falling score, and then, when they run out, the best gap over the
// peak of the curve as it is by then, one after the other.
#pragma once

#include <array>
#include <span>
#include <string_view>
#include <vector>

#include "cost/machine.h"
#include "planners/toolkit/area_curve.h"
#include "planners/toolkit/peak_curve.h"
#include "planners/toolkit/stabbing_tree.h"
#include "schedule/strategy.h"

namespace tidepool {

/// The four priority scores of AutoSwap (section IV-B).
enum class SwapScore : std::uint8_t {
  doa,    ///< duration of absence: gap - out time - in time
  aoa,    ///< area of absence: DOA * bytes, or DOA / bytes when DOA is negative
  wdoa,   ///< area under the load curve over the gap
  swdoa,  ///< WDOA on the curve as updated after each pick
};
inline constexpr std::array<SwapScore, 4> kSwapScores{SwapScore::doa, SwapScore::aoa,
                                                      SwapScore::wdoa, SwapScore::swdoa};
std::string_view to_string(SwapScore score);

/// A linear combination of the scores, weights in the order of kSwapScores. The scores are
/// standardised first: mean 0, deviation 1 over the candidates. One positive weight alone is that
/// score as it is.
using SwapWeights = std::array<double, 4>;
constexpr SwapWeights only(SwapScore score) {
  SwapWeights weights{};
  weights[static_cast<std::size_t>(score)] = 1;
  return weights;
}
/// "DOA", or "0.50 DOA - 0.25 WDOA" without the scores of weight 0.
std::string to_string(const SwapWeights& weights);

struct SwapPick {
  GapId gap = kNone;
  double score = 0;
  bool candidate = false;
};

struct SwapSelection {
  Strategy strategy;
  Bytes peak = 0;               ///< load after the picks, transfers not counted
  std::vector<SwapPick> picks;  ///< in the order of picking
};

/// What AutoSwap knows of a program before it picks. Program and index must outlive it.
class SwapCandidates {
 public:
  static constexpr Bytes kSmallest = kMiB;  ///< the paper's threshold (section IV-A)

  /// Candidates are gaps of tensors of at least `smallest` bytes that span the peak.
  SwapCandidates(const Program& program, const AccessIndex& index, const Machine& machine,
                 std::vector<std::int32_t> algorithms, Bytes smallest = kSmallest);

  /// The picks under a limit. Use a SwapOrder for several limits.
  [[nodiscard]] SwapSelection select(SwapScore score, Bytes limit) const;

  /// The peak with every candidate swapped (section VI-B1).
  [[nodiscard]] Bytes load_min() const;
  [[nodiscard]] std::span<const GapId> candidates() const { return candidates_; }
  /// The load at each op with nothing swapped.
  [[nodiscard]] std::span<const Bytes> load() const { return load_; }
  /// The load at each op with these gaps swapped, transfers not counted.
  [[nodiscard]] std::vector<Bytes> load_without(std::span<const GapId> gaps) const;
  /// `load` per op: the curve that WDOA and SWDOA weigh with.
  [[nodiscard]] double score(SwapScore score, GapId gap, std::span<const Bytes> load) const;

  [[nodiscard]] Bytes smallest() const { return smallest_; }
  /// The op runs while the gap's tensor is idle.
  [[nodiscard]] static bool spans(const Gap& gap, OpId op);
  /// When an op starts if nothing stalls.
  [[nodiscard]] Nanos start(OpId op) const { return start_[static_cast<std::size_t>(op)]; }
  /// Of an iteration in which nothing stalls.
  [[nodiscard]] Nanos compute_time() const { return start_.back(); }
  /// How long the gap's tensor takes to the host.
  [[nodiscard]] Nanos out_time(GapId gap) const;
  [[nodiscard]] Nanos in_time(GapId gap) const;
  /// Of the gap's tensor, as it counts in the load.
  [[nodiscard]] Bytes aligned_bytes(GapId gap) const;

  [[nodiscard]] const Program& program() const { return program_; }
  [[nodiscard]] const AccessIndex& index() const { return index_; }

 private:
  friend class SwapOrder;
  /// Of one score over the candidates.
  struct Spread {
    double mean = 0;
    double deviation = 1;
  };

  /// Calls `see(begin, end)` for the ops, as ranges, that the gap spans.
  template <class See>
  void for_each_part(GapId gap, See&& see) const;
  /// From a curve of the load.
  template <class Curve>
  void take_out(Curve& curve, GapId gap) const;
  [[nodiscard]] double area_over(GapId gap, const AreaCurve& area) const;
  [[nodiscard]] double score_by_area(SwapScore score, GapId gap, const AreaCurve& area) const;
  void score_candidates();
  void score_by_pick_order();

  const Program& program_;
  const AccessIndex& index_;
  Machine machine_;
  std::vector<std::int32_t> algorithms_;
  Bytes smallest_;
  std::vector<Nanos> start_;  ///< per op and one past, when nothing stalls
  std::vector<Bytes> load_;
  AreaCurve area_;  ///< of load_
  std::vector<GapId> candidates_;
  std::vector<std::array<double, 4>> scores_;  ///< per candidate; SWDOA: when it was picked by it
  std::array<Spread, 4> spread_;
};

/// The picks by one combination, made as far as they are asked for; see Note [Pick order].
class SwapOrder {
 public:
  /// `candidates` must outlive it.
  SwapOrder(const SwapCandidates& candidates, const SwapWeights& weights);

  /// The number of picks after which the peak is at most `limit`; all of them where no number is
  /// enough.
  std::size_t picks_until(Bytes limit);
  /// Makes the order at least this long; false when there are not as many gaps.
  bool extend(std::size_t picks);
  /// The first picks; there must be as many.
  [[nodiscard]] SwapSelection first(std::size_t picks) const;
  SwapSelection select(Bytes limit) { return first(picks_until(limit)); }
  /// The load's peak after the first picks.
  [[nodiscard]] Bytes peak_after(std::size_t picks) const { return peaks_[picks]; }
  /// The gaps picked so far.
  [[nodiscard]] std::span<const SwapPick> picks() const { return picks_; }
  [[nodiscard]] const SwapWeights& weights() const { return weights_; }

 private:
  [[nodiscard]] double combine(const std::array<double, 4>& scores) const;
  bool pick_next();
  void pick(GapId gap, double score, bool candidate);
  void begin_others();

  const SwapCandidates& c_;
  SwapWeights weights_;
  std::array<double, 4> factors_;  ///< of the scores as they are
  double offset_ = 0;
  std::vector<SwapPick> ranked_;  ///< the candidates, best first
  std::vector<SwapPick> picks_;
  std::vector<Bytes> peaks_;  ///< after so many picks
  PeakCurve curve_;

  // Beyond the candidates.
  struct Other {
    GapId id = kNone;
    double fixed = 0;  ///< the combination without SWDOA
  };
  [[nodiscard]] double value_of(const Other& other) const;
  [[nodiscard]] std::int32_t best_other();

  bool others_begun_ = false;
  std::vector<Other> others_;  ///< by gap
  StabbingTree others_left_;   ///< by position in others_
  AreaCurve area_;             ///< of curve_, kept up to date where SWDOA counts
};

}  // namespace tidepool
