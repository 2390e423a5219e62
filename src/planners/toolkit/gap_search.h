// Annealing over which gaps are away, on the evaluator, under a limit on the memory load. No
// addresses: `tide` places what this finds.
//
// Note [Gap search]. A state says for each gap whether its tensor is away, and whether it is copied
// or made again; a value that leaves twice unchanged is copied out once. A trial (annealing.h)
// flips single gaps or exchanges two, mostly over stalls and clones, long ones before short ones,
// or exchanges one for as many as fit under the limit (Note [Room] in room_moves.h). Where gaps may
// be remade, half of the trials are about that: one gap, or some that follow each other, as
// segments that are run again together are. The search ends when nothing stalls, or with its
// allowance. Rounds of cooling repeat from the best state so far. How long a round is does not
// depend on the allowance, unless it is told: what more evaluations find is never worse.
//
// Where algorithms may be chosen (Note [Algorithm choice] in algorithm_space.h) they are part of
// the state, and a part of the trials changes them together with gaps: Note [Compound moves] in
// algorithm_moves.h.
//
// Where `triggers` are asked for, when copies go is part of the state too (Note [Triggers] in
// trigger_moves.h).
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "base/random.h"
#include "base/stop.h"
#include "lower/lower.h"
#include "planners/toolkit/algorithm_moves.h"
#include "planners/toolkit/algorithm_space.h"
#include "planners/toolkit/allowance.h"
#include "planners/toolkit/move_screen.h"
#include "planners/toolkit/remakable_gaps.h"
#include "planners/toolkit/room_moves.h"
#include "planners/toolkit/timeline_search.h"
#include "planners/toolkit/trigger_moves.h"

namespace tidepool {

struct GapSearchOptions {
  std::uint64_t seed = 1;
  Allowance allowance = Allowance::unlimited();
  Stop stop;
  /// Stops when stalls take at most this much of an iteration.
  Nanos tolerated_stall{0};
  Nanos lead = Nanos::max();  ///< of copies in, see EvaluateOptions
  /// Of one round of cooling; 0: as many as the number of gaps asks for.
  std::size_t trials = 0;
  bool triggers = false;  ///< trials move those of single copies
  /// Above 0: iterations that take no longer are as good as each other. Of them the state that
  /// writes least to the machine's file is the best; the search begins with bringing back, and ends
  /// when nothing is written, or with its allowance.
  Nanos fast_enough{0};
  MoveScreen* screen = nullptr;  ///< of moves of gaps; may be null
  /// In order: states whose iteration takes exactly so long count as infeasible.
  std::span<const Nanos> passed_over{};
};

class GapSearch {
 public:
  /// `lowering`, `remakable` and `space` must outlive the search, which only reads them. One
  /// algorithm per op. What is not `remakable` is not remade, but where a seed does. `space` may be
  /// null: `algorithms` are not changed.
  GapSearch(const Lowering& lowering, std::vector<std::int32_t> algorithms,
            std::span<const RemakableGap> remakable = {}, const AlgorithmSpace* space = nullptr);

  /// Of the seeds and states given from now on. Searches that may choose begin with them.
  void set_algorithms(const std::vector<std::int32_t>& algorithms) {
    strategy_.algorithms = algorithms;
  }

  /// The same of triggers.
  void set_triggers(const Triggers& triggers) { triggers_.assign(triggers); }

  /// Searches under `load_limit` from the best of the seeds. False when no seed is feasible under
  /// it. Not thread-safe.
  bool run(Bytes load_limit, const std::vector<AwayGaps>& seeds, const GapSearchOptions& options);

  /// Brings back what is away without saving time, the largest first, and takes faster algorithms
  /// where they save time, the slowest ops first; within the allowance of the last `run`.
  void prune();

  [[nodiscard]] const AwayGaps& best() const { return best_; }
  [[nodiscard]] const std::vector<std::int32_t>& best_algorithms() const {
    return best_algorithms_;
  }
  [[nodiscard]] const Triggers& best_triggers() const { return best_triggers_; }
  /// As decisions, with the present algorithms and triggers.
  [[nodiscard]] const Strategy& strategy(const AwayGaps& away);
  /// With `fast_enough` no less than that.
  [[nodiscard]] Nanos time() const { return best_value_.time; }
  /// To the machine's file in an iteration of the best state, in whole blocks.
  [[nodiscard]] Bytes written() const { return best_value_.written; }
  /// Of an iteration without clones; with the fastest algorithms where they may be chosen.
  [[nodiscard]] Nanos compute_time() const { return compute_; }
  /// How long a state's iteration takes under a limit; Nanos::max() where it is not feasible.
  Nanos time_of(const AwayGaps& away, Bytes load_limit, Nanos lead);
  /// The stall before each op in the evaluation before, clones included; it must have been
  /// feasible.
  [[nodiscard]] std::vector<Nanos> delays();
  /// The fastest algorithms that fit under a limit beside what a state with the present ones needs
  /// at each op. Those as they are where that is not feasible, or where there is no choice.
  [[nodiscard]] std::vector<std::int32_t> fitting_algorithms(const AwayGaps& away,
                                                             Bytes load_limit);
  [[nodiscard]] std::int64_t evaluations() const { return evaluations_; }
  /// Of annealing, also those that a screen kept from being evaluated.
  [[nodiscard]] std::int64_t moves() const { return move_count_; }
  /// In the last run.
  [[nodiscard]] std::int64_t spent() const { return options_.allowance.spent(); }

 private:
  class State;
  [[nodiscard]] Bytes bytes(GapId gap) const {
    const TensorId tensor = lowering_.index().gaps()[static_cast<std::size_t>(gap)].tensor;
    return lowering_.program().tensors[static_cast<std::size_t>(tensor)].bytes;
  }
  void set(GapId gap, char away);
  void assign(const AwayGaps& away);
  /// The best state so far.
  void assign_best();
  void decide(TensorId tensor);
  /// Time of an iteration and what annealing minimises.
  struct Value {
    Nanos time = Nanos::max();
    double energy = std::numeric_limits<double>::infinity();
    Bytes written = 0;
    [[nodiscard]] bool better_than(const Value& other) const {
      return time < other.time || (time == other.time && energy < other.energy);
    }
  };
  /// States whose energy is above `give_up_above` may count as infeasible.
  Value evaluate(double give_up_above = std::numeric_limits<double>::infinity());
  /// States that take longer than the best may count as infeasible.
  Value evaluate_up_to_best() { return evaluate(static_cast<double>(best_value_.time.count())); }
  [[nodiscard]] bool out_of_time() const;
  [[nodiscard]] bool done() const;
  void cool();
  void bring_back();
  void take_triggers_away();
  void take_faster_algorithms();
  bool take_faster_algorithm(std::span<const std::size_t> choices);
  [[nodiscard]] bool may_choose() const { return space_ != nullptr && !space_->empty(); }
  /// Where a choice has its algorithm among its candidates.
  [[nodiscard]] std::size_t position(std::size_t choice) const {
    return space_->choices()[choice].position(strategy_.algorithms);
  }

  const Lowering& lowering_;
  Evaluator evaluator_;
  std::vector<GapId> movable_;    ///< gaps that may be away
  std::vector<GapId> promising_;  ///< those long enough for half of their copies
  std::span<const RemakableGap> remakable_;
  const AlgorithmSpace* space_;
  std::optional<RoomMoves> room_;
  std::optional<AlgorithmMoves> moves_;  ///< with a choice
  Strategy strategy_;
  std::vector<Bytes> file_bytes_;  ///< per tensor: what a copy of it writes to a file
  Bytes written_ = 0;              ///< by `strategy_`
  AwayGaps away_;
  AwayGaps best_;
  std::vector<std::int32_t> best_algorithms_;
  TriggerMoves triggers_;
  Triggers best_triggers_;
  Bytes limit_ = 0;
  GapSearchOptions options_;
  Random random_{1};
  Value best_value_;
  Nanos compute_;
  std::int64_t evaluations_ = 0;
  std::int64_t move_count_ = 0;
};

}  // namespace tidepool
