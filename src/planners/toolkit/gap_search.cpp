#include "planners/toolkit/gap_search.h"

#include <algorithm>
#include <cmath>

namespace tidepool {
namespace {

using Clock = std::chrono::steady_clock;

constexpr Nanos kInfeasible = Nanos::max();

std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }
double number(Nanos time) { return static_cast<double>(time.count()); }

}  // namespace

GapSearch::GapSearch(const Lowering& lowering, std::vector<std::int32_t> algorithms)
    : lowering_(lowering),
      evaluator_(lowering.program(), lowering.index(), lowering.machine()),
      strategy_(keep_everything(lowering.program(), lowering.index(), std::move(algorithms))) {
  const Bytes smallest = smallest_worth_moving(lowering, strategy_.algorithms);
  const auto gaps = lowering.index().gaps();
  away_.assign(gaps.size(), 0);
  const std::vector<Nanos> start = unstalled_starts();
  for (GapId g = 0; g < static_cast<GapId>(gaps.size()); ++g) {
    const Gap& gap = gaps[at(g)];
    if (gap.kind != GapKind::device || bytes(g) < smallest) continue;
    movable_.push_back(g);
    const Machine& machine = lowering.machine();
    const Nanos copies = machine.to_host().time(bytes(g)) + machine.to_device().time(bytes(g));
    const Nanos idle = start[at(gap.to)] - start[at(gap.from) + 1];
    if (2 * (gap.wraps ? idle + start.back() : idle) >= copies) promising_.push_back(g);
  }
}

/// Per op and one past the last.
std::vector<Nanos> GapSearch::unstalled_starts() const {
  std::vector<Nanos> start{Nanos{0}};
  const Program& program = lowering_.program();
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    const Op& op = program.ops[i];
    const bool on_device = op.place == OpPlace::device;
    const Algorithm& algorithm = op.algorithms[at(strategy_.algorithms[i])];
    start.push_back(start.back() + (on_device ? algorithm.time : Nanos{0}));
  }
  return start;
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

/// The first gap of a version copies out; the others find the value on the host.
void GapSearch::decide(TensorId t) {
  const auto gaps = lowering_.index().gaps(t);
  const auto first = at(lowering_.index().first_gap(t));
  const std::size_t last = gaps.size() - 1;
  std::int32_t on_host = gaps[last].wraps && away_[first + last] != 0 ? 0 : kNone;
  for (std::size_t i = 0; i < gaps.size(); ++i) {
    Decision& decision = strategy_.gaps[first + i];
    decision = Decision::keep;
    if (gaps[i].kind != GapKind::device) {
      on_host = gaps[i].version;  // a host op made it or gets it
      continue;
    }
    if (away_[first + i] == 0) continue;
    // What goes over the iteration's end has one place on the host, the one it started from.
    const bool valid = gaps[i].version == on_host && (!gaps[i].wraps || on_host == 0);
    decision = valid ? Decision::drop : Decision::swap;
    on_host = gaps[i].version;
  }
}

GapSearch::Value GapSearch::evaluate(double give_up_above) {
  ++evaluations_;
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

bool GapSearch::out_of_time() const {
  return Clock::now() >= options_.deadline || options_.stop.requested();
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
  anneal();
  return true;
}

void GapSearch::anneal() {
  if (movable_.empty()) return;
  // Temperatures in parts of the iteration's compute time and of its stalls: from where a stall of
  // some percent is let pass to where only noise is. One round of cooling takes kTrialsPerGap times
  // as many trials as there are gaps; then it starts again from the best.
  constexpr double kHot = 1e-3;
  constexpr double kCold = 1e-5;
  constexpr double kStalls = 30;
  constexpr std::size_t kTrialsPerGap = 40;
  const std::size_t trials = (promising_.empty() ? movable_ : promising_).size() * kTrialsPerGap;
  while (!done()) {
    assign(best_);
    current_ = evaluate();
    find_stalls();
    const double unit = number(compute_) + kStalls * number(best_value_.time - compute_);
    for (std::size_t i = 0; i < trials && !done(); ++i) {
      const double cooled = static_cast<double>(i) / static_cast<double>(trials);
      step(unit * kHot * std::pow(kCold / kHot, cooled));
    }
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

/// The ops before which the compute stream waits, in the last evaluation.
void GapSearch::find_stalls() {
  stalled_.clear();
  const Expansion& x = evaluator_.expansion();
  const StreamId compute = evaluator_.streams().compute;
  Nanos ready{0};
  for (const Step& step : evaluator_.steps()) {
    if (step.stream != compute) continue;
    if (step.start > ready) stalled_.push_back(x.calls[at(step.id)].op);
    ready = step.end;
  }
}

/// A gap that may matter: mostly one that spans or ends at a stall.
GapId GapSearch::propose() {
  constexpr int kTries = 8;
  const bool any = promising_.empty() || random_.below(50) == 0;
  const std::vector<GapId>& list = any ? movable_ : promising_;
  GapId g = list[random_.below(list.size())];
  if (stalled_.empty() || random_.below(3) == 0) return g;
  const OpId op = stalled_[random_.below(stalled_.size())];
  for (int i = 0; i < kTries; ++i) {
    const Gap& gap = lowering_.index().gaps()[at(g)];
    const bool spans = gap.wraps ? op > gap.from || op <= gap.to : op > gap.from && op <= gap.to;
    if (spans) return g;
    g = list[random_.below(list.size())];
  }
  return g;
}

void GapSearch::step(double temperature) {
  const GapId first = propose();
  set(first, away_[at(first)] == 0);
  GapId second = kNone;
  if (random_.below(2) == 0) {
    second = propose();
    if (second == first || away_[at(second)] == away_[at(first)]) second = kNone;
    if (second != kNone) set(second, away_[at(second)] == 0);
  }
  const double accepted = current_.energy - temperature * std::log1p(-random_.uniform());
  const Value value = evaluate(accepted);
  if (value.energy <= accepted) {
    current_ = value;
    find_stalls();
    if (value.better_than(best_value_)) {
      best_value_ = value;
      best_ = away_;
    }
    return;
  }
  if (second != kNone) set(second, away_[at(second)] == 0);
  set(first, away_[at(first)] == 0);
}

}  // namespace tidepool
