// Annealing over which gaps are away on a timeline that is given: ops have fixed times, the search
// asks where the load then exceeds the limit. It sees no waits, so a state costs microseconds
// where the evaluator needs tens or hundreds of them.
//
// Note [Timeline search]. Copies out follow each other in the order in which their gaps begin, as
// early as they can; copies in follow each other in the order of their deadlines, as late as they
// can. A tensor is absent from the end of the one to the start of the other. The energy is what the
// load exceeds the limit by, over time and at its worst. A state without excess on the timeline
// without stalls needs no stall, but for what the evaluator's waits cost; states with little excess
// are good starts for `GapSearch`. With a timeline that has stalls the search looks for states that
// need no others.
//
// What is remade is given: its bytes are free from the start of its gap to its end. The time that
// takes belongs to the stalls.
#pragma once

#include <span>
#include <vector>

#include "base/random.h"
#include "base/stop.h"
#include "lower/lower.h"
#include "planners/toolkit/allowance.h"

namespace tidepool {

/// Per gap of a program: whether its tensor is away, and how it comes back.
using AwayGaps = std::vector<char>;
inline constexpr char kStays = 0;
inline constexpr char kCopied = 1;  ///< in; and out before, where the host has no copy
inline constexpr char kRemade = 2;  ///< by running ops again

/// What is dropped is copied in.
AwayGaps away_gaps(const std::vector<Decision>& gaps);

class TimelineSearch {
 public:
  struct Options {
    std::uint64_t seed = 1;
    /// kStatesAnEvaluation states count as one evaluation: they are so much quicker.
    Allowance allowance = Allowance::unlimited();
    Stop stop;
    /// Also wants little load where the limit allows more, which makes addresses easier to find;
    /// uses up the allowance.
    bool compact = false;
  };

  /// `lowering` must outlive the search. One algorithm per op.
  TimelineSearch(const Lowering& lowering, std::span<const std::int32_t> algorithms);

  /// From now on; the stalls are to be set anew.
  void set_algorithms(std::span<const std::int32_t> algorithms);
  /// The stall before each op, clones included; empty: none. Nanoseconds.
  void set_stalls(std::span<const Nanos> stalls);

  /// Anneals from `away`, what is remade there apart, until no load exceeds the limit or time is
  /// up. Returns the best state.
  AwayGaps run(Bytes load_limit, const AwayGaps& away, const Options& options);

  /// What the load of the best state exceeds the limit by, at its worst; 0 where nothing does.
  [[nodiscard]] Bytes excess() const { return best_excess_; }
  [[nodiscard]] std::int64_t evaluations() const { return evaluations_; }
  /// In the last run.
  [[nodiscard]] std::int64_t spent() const { return allowance_.spent(); }
  static constexpr std::int64_t kStatesAnEvaluation = 16;
  /// Gaps that may be away: long enough for half of their copies.
  [[nodiscard]] std::span<const GapId> gaps() const { return ids_; }

 private:
  struct Item {
    OpId from = 0;
    OpId to = 0;
    bool wraps = false;
    std::int32_t previous = kNone;  ///< the gap of the same version before, among the items
    double bytes = 0;
    double out = 0;
    double in = 0;
  };
  struct Energy {
    double total = 0;
    double worst = 0;
  };
  class State;
  void free_remade(const AwayGaps& away);
  double time_copies();
  Energy evaluate();
  [[nodiscard]] bool copies_out(std::size_t item) const;
  [[nodiscard]] std::size_t first_op_from(double time) const;
  [[nodiscard]] std::size_t ops_over_by(double time) const;

  const Lowering& lowering_;
  std::vector<std::int32_t> algorithms_;
  std::vector<GapId> ids_;
  std::vector<Item> items_;            ///< per movable gap
  std::vector<std::int32_t> by_from_;  ///< items in the order of copies out
  std::vector<std::int32_t> by_to_;    ///< items in the order of copies in
  std::vector<double> duration_;       ///< per op
  std::vector<double> kept_load_;      ///< per op, everything kept
  std::vector<double> load_;           ///< without what is remade
  std::vector<double> start_;          ///< per op of two iterations
  std::vector<double> end_;
  double period_ = 0;
  double limit_ = 0;
  bool compact_ = false;
  std::vector<char> away_;         ///< per item: copied
  std::vector<std::size_t> free_;  ///< items that are not remade
  std::vector<double> out_end_;
  std::vector<double> in_start_;
  std::vector<double> absent_;  ///< differences, per op of two iterations
  Bytes best_excess_ = 0;
  Allowance allowance_ = Allowance::none();
  std::int64_t evaluations_ = 0;
};

}  // namespace tidepool
