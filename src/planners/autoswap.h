#pragma once

#include <array>
#include <string_view>

#include "plan/planner.h"

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

/// What AutoSwap knows of a program before it picks.
class SwapCandidates {
 public:
  static constexpr Bytes kSmallest = kMiB;  ///< candidates are at least this large (section IV-A)

  SwapCandidates(const Program& program, const AccessIndex& index, const Machine& machine,
                 std::vector<std::int32_t> algorithms);

  /// Picks gaps by score until the peak load is at most `limit`: first among the candidates (gaps
  /// of at least `kSmallest` bytes that span the peak), then, when they run out, among all gaps
  /// that span the peak of the curve as it is by then.
  struct Pick {
    GapId gap = kNone;
    double score = 0;
    bool candidate = false;
  };
  struct Selection {
    Strategy strategy;
    Bytes peak = 0;           ///< load after the picks, transfers not counted
    std::vector<Pick> picks;  ///< in the order of picking
  };
  [[nodiscard]] Selection select(SwapScore score, Bytes limit) const;

  /// The peak with every candidate swapped (section VI-B1).
  [[nodiscard]] Bytes load_min() const;
  [[nodiscard]] std::span<const GapId> candidates() const { return candidates_; }
  /// `load` per op: the curve that WDOA and SWDOA weigh with.
  [[nodiscard]] double score(SwapScore score, GapId gap, std::span<const Bytes> load) const;

 private:
  [[nodiscard]] bool spans(const Gap& gap, OpId op) const;
  void take_out(std::vector<Bytes>& load, GapId gap) const;
  /// Integral of the load up to each op, and over the whole iteration at the end.
  void integrate(std::span<const Bytes> load, std::vector<double>& area) const;
  [[nodiscard]] double score_by_area(SwapScore score, GapId gap,
                                     std::span<const double> area) const;
  [[nodiscard]] Nanos duration(const Gap& gap) const;

  const Program& program_;
  const AccessIndex& index_;
  Machine machine_;
  std::vector<std::int32_t> algorithms_;
  std::vector<Nanos> start_;  ///< per op and one past, when nothing stalls
  std::vector<Bytes> load_;
  std::vector<double> area_;  ///< of load_
  std::vector<GapId> candidates_;
};

/// AutoSwap with the best of the four scores. Selection and packing are repeated under tighter
/// load limits until the footprint meets the budget.
std::unique_ptr<Planner> make_autoswap();

}  // namespace tidepool
