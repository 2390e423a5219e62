#include "planners/toolkit/timeline_search.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/at.h"
#include "ir/load_profile.h"
#include "planners/toolkit/annealing.h"
#include "planners/toolkit/candidate_gaps.h"
#include "planners/toolkit/unstalled_starts.h"

namespace tidepool {
namespace {

double number(Nanos time) { return static_cast<double>(time.count()); }
double number(Bytes bytes) { return static_cast<double>(bytes); }

// What the energy has beside the mean excess, which is over a part of the iteration; all in bytes.
// docs/results/search.md has what halving and doubling them does.
constexpr double kWindowPart = 0.01;
constexpr double kWorstWeight = 0.5;    // of the worst excess
constexpr double kUselessWeight = 0.2;  // of copies that free nothing
constexpr double kCopiedWeight = 0.002;

}  // namespace

/// What annealing moves: items that are away or not.
class TimelineSearch::State {
 public:
  State(TimelineSearch& search, const Stop& stop) : s_(search), stop_(stop) {
    energy_ = best_ = s_.evaluate();
    best_away_ = s_.away_;
  }

  /// Goes on from the best state so far.
  double restart() {
    s_.away_ = best_away_;
    return best_.total;
  }
  [[nodiscard]] const Energy& best() const { return best_; }
  [[nodiscard]] const std::vector<char>& best_away() const { return best_away_; }

  [[nodiscard]] bool is_away(std::size_t item) const { return s_.away_[item] != 0; }
  void flip(std::size_t item) { s_.away_[item] ^= 1; }
  [[nodiscard]] std::size_t propose(Random& random) const {
    return s_.free_[random.below(s_.free_.size())];
  }
  void change(Random& random) { trial_.change(*this, random); }
  void undo() { trial_.undo(*this); }
  double energy(double) {
    energy_ = s_.evaluate();
    return energy_.total;
  }
  void accept() {
    const bool fits = energy_.worst <= 0;
    if (!(fits != (best_.worst <= 0) ? fits : energy_.total < best_.total)) return;
    best_ = energy_;
    best_away_ = s_.away_;
  }
  /// Clocks take as long as small states.
  [[nodiscard]] bool out_of_time() {
    constexpr int kStatesAQuestion = 64;
    if (asked_++ % kStatesAQuestion == 0) {
      out_of_time_ = out_of_time_ || s_.allowance_.used_up() || stop_.requested();
    }
    return out_of_time_;
  }

 private:
  TimelineSearch& s_;
  const Stop& stop_;
  FlipOrExchange trial_;
  Energy energy_;
  Energy best_;
  std::vector<char> best_away_;
  int asked_ = 0;
  bool out_of_time_ = false;
};

TimelineSearch::TimelineSearch(const Lowering& lowering, std::span<const std::int32_t> algorithms)
    : lowering_(lowering), algorithms_(algorithms.begin(), algorithms.end()) {
  const Program& program = lowering.program();
  const Machine& machine = lowering.machine();
  const std::vector<Nanos> starts = unstalled_starts(program, algorithms);
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    duration_.push_back(number(starts[i + 1] - starts[i]));
  }
  const LoadProfile profile =
      load_profile(program, lowering.index(), machine.alignment(), algorithms);
  for (const Bytes load : profile.at_op) kept_load_.push_back(number(load));
  set_stalls({});

  const AccessIndex& index = lowering.index();
  TensorId tensor = kNone;
  std::int32_t version = kNone;
  for (const GapId g :
       candidate_gaps(program, index, smallest_worth_moving(program, index, machine, algorithms))) {
    const Gap& gap = index.gaps()[at(g)];
    if (!long_enough(gap, program, machine, starts)) continue;
    const Bytes bytes = program.tensors[at(gap.tensor)].bytes;
    Item item{gap.from,
              gap.to,
              gap.wraps,
              kNone,
              number(align_up(bytes, machine.alignment())),
              number(machine.to_away().time(bytes)),
              number(machine.from_away().time(bytes))};
    if (gap.tensor == tensor && gap.version == version && !gap.wraps) {
      item.previous = static_cast<std::int32_t>(items_.size()) - 1;
    }
    tensor = gap.tensor;
    version = gap.version;
    ids_.push_back(g);
    items_.push_back(item);
  }
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(items_.size()); ++i) {
    by_from_.push_back(i);
    by_to_.push_back(i);
  }
  std::stable_sort(by_from_.begin(), by_from_.end(), [this](std::int32_t a, std::int32_t b) {
    return items_[at(a)].from < items_[at(b)].from;
  });
  std::stable_sort(by_to_.begin(), by_to_.end(), [this](std::int32_t a, std::int32_t b) {
    return items_[at(a)].to < items_[at(b)].to;
  });
  away_.assign(items_.size(), 0);
  out_end_.resize(items_.size());
  in_start_.resize(items_.size());
}

void TimelineSearch::set_algorithms(std::span<const std::int32_t> algorithms) {
  const Bytes alignment = lowering_.machine().alignment();
  for (std::size_t i = 0; i < algorithms_.size(); ++i) {
    if (algorithms_[i] == algorithms[i]) continue;
    const Op& op = lowering_.program().ops[i];
    const Algorithm& before = op.algorithms[at(algorithms_[i])];
    const Algorithm& now = op.algorithms[at(algorithms[i])];
    if (op.place == OpPlace::device) duration_[i] = number(now.time);
    kept_load_[i] +=
        number(align_up(now.workspace, alignment)) - number(align_up(before.workspace, alignment));
    algorithms_[i] = algorithms[i];
  }
}

void TimelineSearch::set_stalls(std::span<const Nanos> stalls) {
  const std::size_t n = duration_.size();
  start_.resize(2 * n);
  end_.resize(2 * n);
  double now = 0;
  for (std::size_t i = 0; i < n; ++i) {
    if (!stalls.empty()) now += number(stalls[i]);
    start_[i] = now;
    end_[i] = now += duration_[i];
  }
  period_ = now;
  for (std::size_t i = 0; i < n; ++i) {
    start_[n + i] = start_[i] + period_;
    end_[n + i] = end_[i] + period_;
  }
}

/// The host has no copy of this version from an earlier gap that is away.
bool TimelineSearch::copies_out(std::size_t i) const {
  for (std::int32_t p = items_[i].previous; p != kNone; p = items_[at(p)].previous) {
    if (away_[at(p)] != 0) return false;
  }
  return true;
}

std::size_t TimelineSearch::first_op_from(double time) const {
  return static_cast<std::size_t>(std::lower_bound(start_.begin(), start_.end(), time) -
                                  start_.begin());
}

std::size_t TimelineSearch::ops_over_by(double time) const {
  return static_cast<std::size_t>(std::upper_bound(end_.begin(), end_.end(), time) - end_.begin());
}

/// When each copy of what is away ends or starts. Returns the bytes copied, over two iterations.
double TimelineSearch::time_copies() {
  double copied = 0;
  double ready = -period_;
  for (int round = 0; round < 2; ++round) {
    for (const std::int32_t id : by_from_) {
      const std::size_t i = at(id);
      if (away_[i] == 0) continue;
      const double begin = end_[at(items_[i].from)];
      if (!copies_out(i)) {
        out_end_[i] = begin;
        continue;
      }
      ready = std::max(ready, begin) + items_[i].out;
      out_end_[i] = ready;
      copied += items_[i].bytes;
    }
    ready -= period_;
  }
  double next = std::numeric_limits<double>::infinity();
  for (int round = 0; round < 2; ++round) {
    for (std::size_t k = by_to_.size(); k-- > 0;) {
      const std::size_t i = at(by_to_[k]);
      if (away_[i] == 0) continue;
      next = std::min(next, start_[at(items_[i].to)]) - items_[i].in;
      in_start_[i] = next;
      copied += items_[i].bytes;
    }
    next += period_;
  }
  return copied;
}

TimelineSearch::Energy TimelineSearch::evaluate() {
  if (++evaluations_ % kStatesAnEvaluation == 0) allowance_.spend(1);
  const std::size_t n = duration_.size();
  const double copied = time_copies();
  absent_.assign(2 * n + 1, 0);
  double useless = 0;
  for (std::size_t i = 0; i < items_.size(); ++i) {
    if (away_[i] == 0) continue;
    const double back = in_start_[i] + (items_[i].wraps ? period_ : 0);
    const std::size_t first = first_op_from(out_end_[i]);
    const std::size_t last = ops_over_by(back);
    if (first >= last) {
      const double late = std::max(0.0, out_end_[i] - back);
      useless += items_[i].bytes + late * items_[i].bytes / items_[i].in;
      continue;
    }
    absent_[first] += items_[i].bytes;
    absent_[last] -= items_[i].bytes;
  }
  // A compact state also has little load above half the limit.
  constexpr double kCompact = 0.2;
  double area = 0;
  double worst = 0;
  double gone = 0;
  for (std::size_t c = 0; c < n; ++c) {
    gone += absent_[c];
    absent_[c] = gone;
  }
  for (std::size_t c = 0; c < n; ++c) {
    gone += absent_[n + c];
    const double excess = load_[c] - absent_[c] - gone - limit_;
    if (compact_) area += kCompact * std::max(0.0, excess + limit_ / 2) * duration_[c];
    if (excess <= 0) continue;
    worst = std::max(worst, excess);
    area += excess * duration_[c];
  }
  return {area / (kWindowPart * period_) + kWorstWeight * worst + kUselessWeight * useless +
              kCopiedWeight * copied,
          worst};
}

void TimelineSearch::free_remade(const AwayGaps& away) {
  load_ = kept_load_;
  const auto gaps = lowering_.index().gaps();
  for (std::size_t g = 0; g < away.size(); ++g) {
    if (away[g] != kRemade) continue;
    const double bytes = number(align_up(lowering_.program().tensors[at(gaps[g].tensor)].bytes,
                                         lowering_.machine().alignment()));
    for (OpId op = gaps[g].from + 1; op < gaps[g].to; ++op) load_[at(op)] -= bytes;
  }
}

AwayGaps away_gaps(const std::vector<Decision>& gaps) {
  AwayGaps away;
  for (const Decision d : gaps) {
    away.push_back(d == Decision::keep ? kStays : d == Decision::recompute ? kRemade : kCopied);
  }
  return away;
}

AwayGaps TimelineSearch::run(Bytes load_limit, const AwayGaps& away, const Options& options) {
  limit_ = number(load_limit);
  compact_ = options.compact;
  allowance_ = options.allowance;
  free_remade(away);
  free_.clear();
  for (std::size_t i = 0; i < ids_.size(); ++i) {
    away_[i] = away[at(ids_[i])] == kCopied ? 1 : 0;
    if (away[at(ids_[i])] != kRemade) free_.push_back(i);
  }
  Random random(options.seed);
  State state(*this, options.stop);
  double largest = 0;
  for (const Item& item : items_) largest = std::max(largest, item.bytes);
  // Temperatures in parts of the largest tensor; one round of cooling takes kTrialsPerGap times as
  // many trials as there are gaps, then it starts again from the best.
  constexpr double kHot = 0.3;
  constexpr double kCold = 1e-3;
  constexpr std::size_t kTrialsPerGap = 200;
  const Cooling cooling{largest * kHot, largest * kCold, items_.size() * kTrialsPerGap};
  while (!free_.empty() && (state.best().worst > 0 || compact_) && !state.out_of_time()) {
    anneal(state, state.restart(), cooling, random);
  }
  const Energy best = state.best();
  const std::vector<char>& best_away = state.best_away();
  best_excess_ = static_cast<Bytes>(std::ceil(best.worst));
  AwayGaps result(lowering_.index().gaps().size(), 0);
  for (std::size_t g = 0; g < result.size(); ++g) {
    if (away[g] == kRemade) result[g] = kRemade;
  }
  for (const std::size_t i : free_) result[at(ids_[i])] = best_away[i];
  return result;
}

}  // namespace tidepool
