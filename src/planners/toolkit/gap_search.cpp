#include "planners/toolkit/gap_search.h"

#include <algorithm>
#include <cmath>

#include "base/at.h"
#include "planners/toolkit/annealing.h"
#include "planners/toolkit/candidate_gaps.h"
#include "planners/toolkit/strategy_builder.h"
#include "planners/toolkit/unstalled_starts.h"

namespace tidepool {
namespace {

constexpr Nanos kInfeasible = Nanos::max();

double number(Nanos time) { return static_cast<double>(time.count()); }

}  // namespace

/// What annealing moves: the search's gaps.
class GapSearch::State {
 public:
  explicit State(GapSearch& search) : s_(search) {
    value_ = s_.evaluate();
    find_stalls();
  }

  [[nodiscard]] double current() const { return value_.energy; }
  [[nodiscard]] bool is_away(std::size_t gap) const { return s_.away_[gap] != 0; }
  void flip(std::size_t gap) { s_.set(static_cast<GapId>(gap), !is_away(gap)); }
  double energy(double give_up_above) {
    value_ = s_.evaluate(give_up_above);
    return value_.energy;
  }
  void accept() {
    find_stalls();
    if (!value_.better_than(s_.best_value_)) return;
    s_.best_value_ = value_;
    s_.best_ = s_.away_;
  }
  [[nodiscard]] bool out_of_time() const { return s_.done(); }

  /// A gap that may matter: mostly one that spans or ends at a stall.
  std::size_t propose(Random& random) {
    constexpr int kTries = 24;
    const bool any = s_.promising_.empty() || random.below(50) == 0;
    const std::vector<GapId>& list = any ? s_.movable_ : s_.promising_;
    GapId g = list[random.below(list.size())];
    if (stalled_.empty() || random.below(4) == 0) return at(g);
    const OpId op = random_stall(random);
    for (int i = 0; i < kTries; ++i) {
      const Gap& gap = s_.lowering_.index().gaps()[at(g)];
      const bool spans = gap.wraps ? op > gap.from || op <= gap.to : op > gap.from && op <= gap.to;
      if (spans) break;
      g = list[random.below(list.size())];
    }
    return at(g);
  }

 private:
  /// The ops before which the compute stream waits in the last evaluation.
  void find_stalls() {
    stalled_.clear();
    Nanos sum{0};
    s_.evaluator_.each_stall([&](OpId op, Nanos stall) { stalled_.push_back({op, sum += stall}); });
  }

  /// One of them; half of the time by length.
  OpId random_stall(Random& random) const {
    if (random.below(2) == 0) return stalled_[random.below(stalled_.size())].op;
    const double part = random.uniform() * number(stalled_.back().sum);
    return std::lower_bound(stalled_.begin(), stalled_.end() - 1, part,
                            [](const Stall& s, double sum) { return number(s.sum) < sum; })
        ->op;
  }

  struct Stall {
    OpId op = kNone;
    Nanos sum{};  ///< up to this one
  };
  GapSearch& s_;
  Value value_;
  std::vector<Stall> stalled_;
};

GapSearch::GapSearch(const Lowering& lowering, std::vector<std::int32_t> algorithms)
    : lowering_(lowering),
      evaluator_(lowering.program(), lowering.index(), lowering.machine()),
      strategy_(keep_everything(lowering.program(), lowering.index(), std::move(algorithms))) {
  const Program& program = lowering.program();
  const AccessIndex& index = lowering.index();
  const Machine& machine = lowering.machine();
  away_.assign(index.gaps().size(), 0);
  const std::vector<Nanos> starts = unstalled_starts(program, strategy_.algorithms);
  movable_ = candidate_gaps(program, index,
                            smallest_worth_moving(program, index, machine, strategy_.algorithms));
  std::copy_if(movable_.begin(), movable_.end(), std::back_inserter(promising_),
               [&](GapId g) { return long_enough(index.gaps()[at(g)], program, machine, starts); });
}

Bytes GapSearch::bytes(GapId g) const {
  return lowering_.program().tensors[at(lowering_.index().gaps()[at(g)].tensor)].bytes;
}

void GapSearch::set(GapId g, bool away) {
  away_[at(g)] = away ? 1 : 0;
  decide(lowering_.index().gaps()[at(g)].tensor);
}

void GapSearch::assign(const AwayGaps& away) {
  away_ = away;
  TensorId last = kNone;
  for (const Gap& gap : lowering_.index().gaps()) {
    if (gap.tensor != last) decide(last = gap.tensor);
  }
}

const Strategy& GapSearch::strategy(const AwayGaps& away) {
  assign(away);
  return strategy_;
}

void GapSearch::decide(TensorId t) {
  const auto first = at(lowering_.index().first_gap(t));
  const std::size_t end = first + lowering_.index().gaps(t).size();
  for (std::size_t g = first; g < end; ++g) {
    strategy_.gaps[g] = away_[g] != 0 ? Decision::swap : Decision::keep;
  }
  derive_drops(lowering_.index(), t, strategy_.gaps);
}

GapSearch::Value GapSearch::evaluate(double give_up_above) {
  ++evaluations_;
  options_.allowance.spend(1);
  EvaluateOptions timing{limit_, true, options_.lead};
  if (give_up_above < number(Nanos::max()))
    timing.give_up_above = Nanos{std::llround(give_up_above)};
  const Evaluation e = evaluator_.evaluate(strategy_, timing);
  compute_ = e.compute_time;
  if (!e.feasible) return {};
  // Among equals the state that copies less: it leaves the link to others.
  constexpr double kCopyWeight = 0.002;
  return {e.iteration_time, number(e.iteration_time) + kCopyWeight * number(e.copy_time)};
}

Nanos GapSearch::time_of(const AwayGaps& away, Bytes load_limit, Nanos lead) {
  ++evaluations_;
  const Evaluation e = evaluator_.evaluate(strategy(away), {load_limit, true, lead});
  return e.feasible ? e.iteration_time : kInfeasible;
}

std::vector<Nanos> GapSearch::stalls() {
  std::vector<Nanos> result(lowering_.program().ops.size(), Nanos{0});
  evaluator_.each_stall([&](OpId op, Nanos stall) { result[at(op)] += stall; });
  return result;
}

bool GapSearch::out_of_time() const {
  return options_.allowance.used_up() || options_.stop.requested();
}

bool GapSearch::done() const {
  return best_value_.time <= compute_ + options_.tolerated_stall || out_of_time();
}

bool GapSearch::run(Bytes load_limit, const std::vector<AwayGaps>& seeds,
                    const GapSearchOptions& options) {
  limit_ = load_limit;
  options_ = options;
  random_ = Random(options.seed);
  best_value_ = {};
  for (const AwayGaps& seed : seeds) {
    assign(seed);
    const Value value = evaluate();
    if (!value.better_than(best_value_)) continue;
    best_value_ = value;
    best_ = seed;
  }
  if (best_value_.time == kInfeasible) return false;
  cool();
  return true;
}

void GapSearch::cool() {
  if (movable_.empty()) return;
  // Temperatures in parts of the iteration's compute time and of its stalls: from where a stall of
  // some percent is let pass to where only noise is. One round of cooling takes kTrialsPerGap times
  // as many trials as there are gaps; then it starts again from the best.
  constexpr double kHot = 1e-3;
  constexpr double kCold = 1e-5;
  constexpr double kStalls = 30;
  constexpr std::size_t kTrialsPerGap = 40;
  const std::size_t trials =
      options_.trials > 0 ? options_.trials
                          : (promising_.empty() ? movable_ : promising_).size() * kTrialsPerGap;
  while (!done()) {
    assign(best_);
    State state(*this);
    const double unit = number(compute_) + kStalls * number(best_value_.time - compute_);
    anneal(state, state.current(), {unit * kHot, unit * kCold, trials}, random_);
    prune();
  }
}

void GapSearch::prune() {
  assign(best_);
  std::vector<GapId> order;
  for (const GapId g : movable_) {
    if (away_[at(g)] != 0) order.push_back(g);
  }
  std::stable_sort(order.begin(), order.end(),
                   [this](GapId a, GapId b) { return bytes(a) > bytes(b); });
  for (const GapId g : order) {
    if (out_of_time()) break;
    set(g, false);
    const Value value = evaluate(number(best_value_.time));
    if (value.better_than(best_value_)) {
      best_value_ = value;
    } else {
      set(g, true);
    }
  }
  best_ = away_;
}

}  // namespace tidepool
