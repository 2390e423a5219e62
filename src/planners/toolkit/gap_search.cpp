#include "planners/toolkit/gap_search.h"

#include <algorithm>
#include <cmath>

#include "base/at.h"
#include "ir/load_profile.h"
#include "planners/toolkit/annealing.h"
#include "planners/toolkit/candidate_gaps.h"
#include "planners/toolkit/delays.h"
#include "planners/toolkit/strategy_builder.h"
#include "planners/toolkit/unstalled_starts.h"
#include "planners/toolkit/wear.h"

namespace tidepool {
namespace {

constexpr Nanos kInfeasible = Nanos::max();
/// Of so many trials one is for room. Neither 4 nor 10 was better, on random small programs and on
/// four networks.
constexpr std::uint64_t kTrialsForRoom = 6;

double number(Nanos time) { return static_cast<double>(time.count()); }

}  // namespace

/// What annealing moves: the search's gaps.
class GapSearch::State {
 public:
  explicit State(GapSearch& search) : s_(search) {
    value_ = s_.evaluate();
    find_delays();
  }

  [[nodiscard]] double current() const { return value_.energy; }
  [[nodiscard]] bool is_away(std::size_t gap) const { return s_.away_[gap] != 0; }
  void flip(std::size_t gap) { become(gap, is_away(gap) ? kStays : kCopied); }

  /// One that promises something, where that is asked for.
  void change(Random& random) {
    MoveScreen* const screen = s_.options_.screen;
    if (screen != nullptr && changes_++ % MoveScreen::kChangesALook == 0) screen->look(s_.away_);
    change_once(random);
    for (int tries = 0; screen != nullptr && tries < MoveScreen::kMostTries; ++tries) {
      if (moved_trigger_ || !algorithms_.empty()) break;
      if (screen->promises(changed_, s_.away_)) break;
      undo();
      change_once(random);
    }
  }
  void change_once(Random& random) {
    ++s_.move_count_;
    changed_.clear();
    algorithms_.clear();
    moved_trigger_ = s_.options_.triggers && random.below(3) == 0 && move_trigger(random);
    if (moved_trigger_) return;
    if (!s_.movable_.empty() && random.below(kTrialsForRoom) == 0) {
      exchange_for_room(random);
    } else if (s_.may_choose() && (s_.movable_.empty() || random.below(3) == 0)) {
      change_algorithms(random);
    } else if (s_.remakable_.empty() || random.below(2) == 0) {
      trial_.change(*this, random);
    } else {
      change_remade(random);
    }
  }
  void undo() {
    if (moved_trigger_) s_.triggers_.undo();
    for (std::size_t i = changed_.size(); i-- > 0;) {
      s_.set(static_cast<GapId>(changed_[i].first), changed_[i].second);
    }
    for (std::size_t i = algorithms_.size(); i-- > 0;) {
      s_.strategy_.algorithms[at(algorithms_[i].first)] = algorithms_[i].second;
    }
  }
  double energy(double give_up_above) {
    value_ = s_.evaluate(give_up_above);
    return value_.energy;
  }
  void accept() {
    find_delays();
    if (!value_.better_than(s_.best_value_)) return;
    s_.best_value_ = value_;
    s_.best_ = s_.away_;
    s_.best_triggers_ = s_.triggers_.triggers();
    if (s_.may_choose()) s_.best_algorithms_ = s_.strategy_.algorithms;
  }
  [[nodiscard]] bool out_of_time() const { return s_.done(); }

  /// A gap that may matter: mostly one that spans or ends at a delay.
  std::size_t propose(Random& random) {
    const bool any = s_.promising_.empty() || random.below(50) == 0;
    const std::vector<GapId>& list = any ? s_.movable_ : s_.promising_;
    return at(
        list[one_at_a_delay(list.size(), random, [&](std::size_t i) { return gap_of(list[i]); })]);
  }

 private:
  [[nodiscard]] const Gap& gap_of(GapId g) const { return s_.lowering_.index().gaps()[at(g)]; }
  void become(std::size_t gap, char away) {
    changed_.emplace_back(gap, s_.away_[gap]);
    s_.set(static_cast<GapId>(gap), away);
  }

  /// Of a gap that is copied, mostly over a delay. False where none was found.
  bool move_trigger(Random& random) {
    constexpr int kTries = 24;
    for (int tries = 0; tries < kTries && !s_.movable_.empty(); ++tries) {
      const std::size_t gap = propose(random);
      const Decision decision = s_.strategy_.gaps[gap];
      if (decision != Decision::swap && decision != Decision::drop) continue;
      s_.triggers_.change(static_cast<GapId>(gap), decision, random);
      return true;
    }
    return false;
  }

  /// Of so many gaps one, mostly over a delay.
  template <class GapAt>
  std::size_t one_at_a_delay(std::size_t count, Random& random, GapAt&& gap_at) const {
    constexpr int kTries = 24;
    std::size_t i = random.below(count);
    if (delayed_.empty() || random.below(4) == 0) return i;
    const OpId op = delayed_.draw(random);
    for (int tries = 0; tries < kTries; ++tries) {
      if (spans(gap_at(i), op)) break;
      i = random.below(count);
    }
    return i;
  }
  /// An op that waits before it starts may be the one that ends the gap.
  static bool spans(const Gap& gap, OpId op) {
    return gap.wraps ? op > gap.from || op <= gap.to : op > gap.from && op <= gap.to;
  }

  /// Algorithms and gaps together: Note [Compound moves] in algorithm_moves.h.
  void change_algorithms(Random& random) {
    AlgorithmMoves& moves = *s_.moves_;
    const RoomMoves::State state = state_now();
    if (s_.movable_.empty() || random.below(2) == 0) {
      moves.change_algorithms(state, random);
    } else {
      const std::size_t gap = propose(random);
      moves.change_gap(state, static_cast<GapId>(gap), is_away(gap) ? kStays : kCopied);
    }
    take_room_move();
  }
  /// Note [Room] in room_moves.h.
  void exchange_for_room(Random& random) {
    const std::size_t i = one_at_a_delay(s_.movable_.size(), random,
                                         [&](std::size_t k) { return gap_of(s_.movable_[k]); });
    const GapId gap = s_.movable_[i];
    const RoomMoves::State state = state_now();
    if (s_.may_choose() && is_away(at(gap)) && random.below(2) == 0) {
      s_.moves_->change_gap(state, gap, kStays);
      s_.room_->make_room_in(state, gap, random);
    } else {
      s_.room_->exchange(state, gap, random);
    }
    take_room_move();
  }
  [[nodiscard]] RoomMoves::State state_now() const {
    return {s_.away_, s_.strategy_.algorithms, load_, s_.limit_};
  }
  void take_room_move() {
    for (const auto& [op, algorithm] : s_.room_->move().algorithms) {
      std::int32_t& now = s_.strategy_.algorithms[at(op)];
      algorithms_.emplace_back(op, std::exchange(now, algorithm));
    }
    for (const auto& [gap, away] : s_.room_->move().gaps) become(at(gap), away);
  }

  /// Remakes a gap, or some that follow each other, or does so no longer.
  void change_remade(Random& random) {
    constexpr std::uint64_t kMostOfASegment = 12;
    const auto& all = s_.remakable_;
    const std::size_t first =
        one_at_a_delay(all.size(), random, [&](std::size_t i) { return gap_of(all[i].gap); });
    const bool remade = s_.away_[at(all[first].gap)] == kRemade;
    const char otherwise = random.below(2) == 0 ? kStays : kCopied;
    const std::size_t count = random.below(3) == 0 ? 2 + random.below(kMostOfASegment - 1) : 1;
    for (std::size_t i = first; i < std::min(first + count, all.size()); ++i) {
      const std::size_t gap = at(all[i].gap);
      if ((s_.away_[gap] == kRemade) == remade) become(gap, remade ? otherwise : kRemade);
    }
    if (count > 1 || random.below(2) == 0) return;
    // Exchanged for another one.
    const std::size_t second =
        one_at_a_delay(all.size(), random, [&](std::size_t i) { return gap_of(all[i].gap); });
    const std::size_t gap = at(all[second].gap);
    if (second != first && (s_.away_[gap] == kRemade) != remade) {
      become(gap, remade ? kRemade : otherwise);
    }
  }

  /// The ops that start later than the one before them ends in the last evaluation.
  void find_delays() {
    delayed_.clear();
    s_.evaluator_.each_delay([&](OpId op, Nanos delay) { delayed_.add(op, delay); });
    load_.assign(s_.lowering_.program().ops.size(), 0);
    s_.evaluator_.each_least_load(
        [&](OpId op, Bytes bytes) { load_[at(op)] = std::max(load_[at(op)], bytes); });
  }

  GapSearch& s_;
  FlipOrExchange trial_;
  bool moved_trigger_ = false;  ///< by the last change
  int changes_ = 0;
  // By the last change: what was there.
  std::vector<std::pair<std::size_t, char>> changed_;
  std::vector<std::pair<OpId, std::int32_t>> algorithms_;
  Value value_;
  Delays delayed_;
  std::vector<Bytes> load_;  ///< per op, without workspaces, of the current state; with a choice
};

GapSearch::GapSearch(const Lowering& lowering, std::vector<std::int32_t> algorithms,
                     std::span<const RemakableGap> remakable, const AlgorithmSpace* space)
    : lowering_(lowering),
      evaluator_(lowering.program(), lowering.index(), lowering.machine()),
      remakable_(remakable),
      space_(space),
      strategy_(keep_everything(lowering.program(), lowering.index(), std::move(algorithms))),
      triggers_(lowering.program(), lowering.index()),
      compute_(tidepool::compute_time(lowering.program(),
                                      may_choose() ? space->fastest() : strategy_.algorithms)) {
  const Program& program = lowering.program();
  const AccessIndex& index = lowering.index();
  const Machine& machine = lowering.machine();
  away_.assign(index.gaps().size(), 0);
  file_bytes_ = bytes_written_when_away(program, machine);
  const std::vector<Nanos> starts = unstalled_starts(program, strategy_.algorithms);
  movable_ = candidate_gaps(program, index,
                            smallest_worth_moving(program, index, machine, strategy_.algorithms));
  std::copy_if(movable_.begin(), movable_.end(), std::back_inserter(promising_),
               [&](GapId g) { return long_enough(index.gaps()[at(g)], program, machine, starts); });
  room_.emplace(lowering, may_choose() ? space->fastest() : strategy_.algorithms, movable_,
                remakable);
  if (may_choose()) moves_.emplace(lowering, *space, *room_);
}

void GapSearch::set(GapId g, char away) {
  away_[at(g)] = away;
  decide(lowering_.index().gaps()[at(g)].tensor);
}

void GapSearch::assign(const AwayGaps& away) {
  away_ = away;
  TensorId last = kNone;
  for (const Gap& gap : lowering_.index().gaps()) {
    if (gap.tensor != last) decide(last = gap.tensor);
  }
}

void GapSearch::assign_best() {
  assign(best_);
  triggers_.assign(best_triggers_);
  if (may_choose()) strategy_.algorithms = best_algorithms_;
}

const Strategy& GapSearch::strategy(const AwayGaps& away) {
  assign(away);
  strategy_.hints = in_effect(triggers_.triggers(), strategy_.gaps);
  return strategy_;
}

void GapSearch::decide(TensorId t) {
  const auto first = at(lowering_.index().first_gap(t));
  const std::size_t end = first + lowering_.index().gaps(t).size();
  const Bytes bytes = file_bytes_[at(t)];
  for (std::size_t g = first; g < end; ++g) {
    if (strategy_.gaps[g] == Decision::swap) written_ -= bytes;
    strategy_.gaps[g] = away_[g] == kStays    ? Decision::keep
                        : away_[g] == kCopied ? Decision::swap
                                              : Decision::recompute;
  }
  derive_drops(lowering_.index(), t, strategy_.gaps);
  for (std::size_t g = first; g < end; ++g) {
    if (strategy_.gaps[g] == Decision::swap) written_ += bytes;
  }
}

GapSearch::Value GapSearch::evaluate(double give_up_above) {
  ++evaluations_;
  options_.allowance.spend(1);
  EvaluateOptions timing{limit_, true, options_.lead};
  if (give_up_above < number(Nanos::max()))
    timing.give_up_above = Nanos{std::llround(give_up_above)};
  strategy_.hints = in_effect(triggers_.triggers(), strategy_.gaps);
  const Evaluation e = evaluator_.evaluate(strategy_, timing);
  if (!e.feasible || std::ranges::binary_search(options_.passed_over, e.iteration_time)) return {};
  // Among equals the state that copies less: it leaves the link to others.
  constexpr double kCopyWeight = 0.002;
  const double copies = kCopyWeight * number(e.copy_time);
  if (options_.fast_enough == Nanos{0})
    return {e.iteration_time, number(e.iteration_time) + copies};
  constexpr double kWriteWeight = 0.1;  // that of a tensor is then as temperatures are
  const Nanos time = std::max(e.iteration_time, options_.fast_enough);
  const double writes = kWriteWeight * number(lowering_.machine().to_away().time(written_));
  return {time, number(time) + copies + writes, written_};
}

Nanos GapSearch::time_of(const AwayGaps& away, Bytes load_limit, Nanos lead) {
  ++evaluations_;
  const Evaluation e = evaluator_.evaluate(strategy(away), {load_limit, true, lead});
  return e.feasible ? e.iteration_time : kInfeasible;
}

std::vector<Nanos> GapSearch::delays() {
  std::vector<Nanos> result(lowering_.program().ops.size(), Nanos{0});
  evaluator_.each_delay([&](OpId op, Nanos delay) { result[at(op)] += delay; });
  return result;
}

std::vector<std::int32_t> GapSearch::fitting_algorithms(const AwayGaps& away, Bytes load_limit) {
  if (!may_choose() || time_of(away, load_limit, Nanos::max()) == kInfeasible) {
    return strategy_.algorithms;
  }
  std::vector<Bytes> load(lowering_.program().ops.size(), 0);
  evaluator_.each_least_load(
      [&](OpId op, Bytes bytes) { load[at(op)] = std::max(load[at(op)], bytes); });
  return space_->fitting(load, load_limit);
}

bool GapSearch::out_of_time() const {
  return options_.allowance.used_up() || options_.stop.requested();
}

bool GapSearch::done() const {
  if (options_.fast_enough > Nanos{0}) return best_value_.written == 0 || out_of_time();
  return best_value_.time <= compute_ + options_.tolerated_stall || out_of_time();
}

bool GapSearch::run(Bytes load_limit, const std::vector<AwayGaps>& seeds,
                    const GapSearchOptions& options) {
  limit_ = load_limit;
  options_ = options;
  random_ = Random(options.seed);
  best_value_ = {};
  best_algorithms_ = strategy_.algorithms;
  best_triggers_ = triggers_.triggers();
  for (const AwayGaps& seed : seeds) {
    assign(seed);
    const Value value = evaluate();
    if (!value.better_than(best_value_)) continue;
    best_value_ = value;
    best_ = seed;
  }
  if (best_value_.time == kInfeasible) return false;
  if (options.fast_enough > Nanos{0}) prune();
  cool();
  return true;
}

void GapSearch::cool() {
  if (movable_.empty() && !may_choose()) return;
  // Temperatures in parts of the iteration's compute time and of what it takes longer: from where a
  // stall of some percent is let pass to where only noise is. One round of cooling takes
  // kTrialsPerGap times as many trials as there are gaps; then it starts again from the best.
  constexpr double kHot = 1e-3;
  constexpr double kCold = 1e-5;
  constexpr double kStalls = 30;
  constexpr std::size_t kTrialsPerGap = 40;
  std::size_t moves = (promising_.empty() ? movable_ : promising_).size();
  if (may_choose()) moves += space_->choices().size();
  const std::size_t trials = options_.trials > 0 ? options_.trials : moves * kTrialsPerGap;
  while (!done()) {
    assign_best();
    State state(*this);
    const double unit = number(compute_) + kStalls * number(best_value_.time - compute_);
    anneal(state, state.current(), {unit * kHot, unit * kCold, trials}, random_);
    prune();
  }
}

}  // namespace tidepool
