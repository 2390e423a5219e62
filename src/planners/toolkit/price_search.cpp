#include "planners/toolkit/price_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "base/at.h"
#include "ir/load_profile.h"
#include "planners/toolkit/candidate_gaps.h"
#include "planners/toolkit/peak_curve.h"
#include "planners/toolkit/stabbing_tree.h"
#include "planners/toolkit/unstalled_starts.h"

namespace tidepool {
namespace {

double count_of(Nanos time) { return static_cast<double>(time.count()); }
double count_of(Bytes bytes) { return static_cast<double>(bytes); }

}  // namespace

PriceSearch::PriceSearch(const Lowering& lowering, std::span<const std::int32_t> algorithms,
                         std::span<const RemakableGap> remakable)
    : lowering_(lowering),
      algorithms_(algorithms.begin(), algorithms.end()),
      remakable_(remakable),
      ops_(lowering.program().ops.size()) {
  const Program& program = lowering.program();
  const std::vector<Nanos> starts = unstalled_starts(program, algorithms);
  for (std::size_t i = 0; i < ops_; ++i) duration_.push_back(count_of(starts[i + 1] - starts[i]));
  const LoadProfile profile =
      load_profile(program, lowering.index(), lowering.machine().alignment(), algorithms);
  for (const Bytes load : profile.at_op) kept_load_.push_back(count_of(load));
  start_.resize(2 * ops_);
  end_.resize(2 * ops_);
  prices_.resize(2 * ops_ + 1);
  item_of_.assign(lowering.index().gaps().size(), kNone);
  const Bytes smallest =
      smallest_worth_moving(program, lowering.index(), lowering.machine(), algorithms);
  for (std::int32_t r = 0; r < std::ssize(remakable_); ++r) item_of_[at(remakable_[at(r)].gap)] = r;
  TensorId tensor = kNone;
  std::int32_t version = kNone;
  for (const GapId g : candidate_gaps(program, lowering.index(), smallest)) {
    const Gap& gap = lowering.index().gaps()[at(g)];
    const std::int32_t made = std::exchange(item_of_[at(g)], kNone);
    if (made == kNone && !gap.dead && !long_enough(gap, program, lowering.machine(), starts))
      continue;
    const Bytes bytes = program.tensors[at(gap.tensor)].bytes;
    Item item{g,
              gap.from,
              gap.to,
              gap.wraps,
              gap.dead,
              kNone,
              made,
              count_of(align_up(bytes, lowering.machine().alignment())),
              count_of(lowering.machine().to_away().time(bytes)),
              count_of(lowering.machine().from_away().time(bytes))};
    if (gap.tensor == tensor && gap.version == version && !gap.wraps) {
      item.previous = static_cast<std::int32_t>(items_.size()) - 1;
    }
    tensor = gap.tensor;
    version = gap.version;
    item_of_[at(g)] = static_cast<std::int32_t>(items_.size());
    items_.push_back(item);
  }
  add_items();
}

void PriceSearch::add_items() {
  by_from_.resize(items_.size());
  std::iota(by_from_.begin(), by_from_.end(), std::size_t{0});
  by_deadline_ = by_from_;
  std::stable_sort(by_from_.begin(), by_from_.end(), [this](std::size_t a, std::size_t b) {
    return items_[a].from < items_[b].from;
  });
  std::copy_if(by_from_.rbegin(), by_from_.rend(), std::back_inserter(latest_made_),
               [this](std::size_t i) { return items_[i].remakable != kNone; });
  state_.assign(items_.size(), kStays);
  for (std::size_t i = 0; i < items_.size(); ++i) {
    deadline_.push_back(items_[i].to);
    if (items_[i].dead) state_[i] = kCopied;
  }
  copies_.resize(items_.size());
}

void PriceSearch::set_algorithms(std::span<const std::int32_t> algorithms) {
  const Bytes alignment = lowering_.machine().alignment();
  for (std::size_t i = 0; i < ops_; ++i) {
    if (algorithms_[i] == algorithms[i]) continue;
    const Op& op = lowering_.program().ops[i];
    const Algorithm& before = op.algorithms[at(algorithms_[i])];
    const Algorithm& now = op.algorithms[at(algorithms[i])];
    if (op.place == OpPlace::device) duration_[i] = count_of(now.time);
    kept_load_[i] += count_of(align_up(now.workspace, alignment)) -
                     count_of(align_up(before.workspace, alignment));
    algorithms_[i] = algorithms[i];
  }
}

/// What clones read has to be back when the first of them runs.
void PriceSearch::find_deadlines() {
  for (std::size_t i = 0; i < items_.size(); ++i) deadline_[i] = items_[i].to;
  for (const std::size_t i : latest_made_) {
    if (state_[i] != kRemade) continue;
    for (const GapId g : remakable_[at(items_[i].remakable)].sources) {
      const std::int32_t source = item_of_[at(g)];
      if (source == kNone || items_[at(source)].from >= deadline_[i]) continue;
      deadline_[at(source)] = std::min(deadline_[at(source)], deadline_[i]);
    }
  }
}

void PriceSearch::make_timeline() {
  std::vector<double>& before = absent_;
  before.assign(ops_, 0);
  for (const std::size_t i : latest_made_) {
    if (state_[i] != kRemade) continue;
    before[at(deadline_[i])] += count_of(remakable_[at(items_[i].remakable)].time);
  }
  double now = 0;
  for (std::size_t op = 0; op < ops_; ++op) {
    now += before[op];
    start_[op] = now;
    end_[op] = now += duration_[op];
  }
  period_ = now;
  for (std::size_t op = 0; op < ops_; ++op) {
    start_[ops_ + op] = start_[op] + period_;
    end_[ops_ + op] = end_[op] + period_;
  }
}

/// The host has no copy of this version from an earlier gap that is away.
bool PriceSearch::copies_out(std::size_t i) const {
  for (std::int32_t p = items_[i].previous; p != kNone; p = items_[at(p)].previous) {
    if (state_[at(p)] == kCopied) return false;
  }
  return !items_[i].dead;
}

std::size_t PriceSearch::first_op_from(double time) const {
  return static_cast<std::size_t>(std::lower_bound(start_.begin(), start_.end(), time) -
                                  start_.begin());
}

std::size_t PriceSearch::ops_over_by(double time) const {
  return static_cast<std::size_t>(std::upper_bound(end_.begin(), end_.end(), time) - end_.begin());
}

double PriceSearch::rate_at(double time) const {
  const std::size_t first = first_op_from(std::max(time - window_, 0.0));
  const std::size_t last = first_op_from(time + window_);
  return price(first, last) / (2 * window_);
}

void PriceSearch::time_copies_out() {
  double ready = -period_;
  for (int round = 0; round < 2; ++round) {
    for (const std::size_t i : by_from_) {
      const double begin = end_[at(items_[i].from)];
      if (!copies_out(i)) {
        copies_[i].out_end = begin;
        continue;
      }
      copies_[i].out_end = std::max(ready, begin) + items_[i].out;
      if (state_[i] == kCopied) ready = copies_[i].out_end;
    }
    ready -= period_;
  }
  double behind = 0;  // what the next copy and those right behind it lose by each nanosecond
  double next = std::numeric_limits<double>::infinity();
  for (std::size_t k = by_from_.size(); k-- > 0;) {
    const std::size_t i = by_from_[k];
    if (items_[i].dead) continue;
    copies_[i].out_price = std::min(next < copies_[i].out_end + 1 ? behind : 0.0, 1.0);
    if (state_[i] != kCopied || !copies_out(i)) continue;
    if (next > copies_[i].out_end + 1) behind = 0;
    behind += items_[i].bytes * rate_at(copies_[i].out_end);
    next = copies_[i].out_end - items_[i].out;
  }
}

void PriceSearch::time_copies_in() {
  std::sort(by_deadline_.begin(), by_deadline_.end(), [this](std::size_t a, std::size_t b) {
    return deadline_[a] != deadline_[b] ? deadline_[a] < deadline_[b] : a < b;
  });
  double next = std::numeric_limits<double>::infinity();
  for (int round = 0; round < 2; ++round) {
    for (std::size_t k = by_deadline_.size(); k-- > 0;) {
      const std::size_t i = by_deadline_[k];
      const double end = std::min(next, start_[at(deadline_[i])]);
      copies_[i].in_start = items_[i].dead ? start_[at(deadline_[i])] : end - items_[i].in;
      if (state_[i] == kCopied && !items_[i].dead) next = copies_[i].in_start;
    }
    next += period_;
  }
  double before = 0;
  double last = -std::numeric_limits<double>::infinity();
  for (const std::size_t i : by_deadline_) {
    if (items_[i].dead) continue;
    copies_[i].in_price = std::min(last > copies_[i].in_start - 1 ? before : 0.0, 1.0);
    if (state_[i] != kCopied) continue;
    if (last < copies_[i].in_start - 1) before = 0;
    before += items_[i].bytes * rate_at(copies_[i].in_start + (items_[i].wraps ? period_ : 0));
    last = copies_[i].in_start + items_[i].in;
  }
}

void PriceSearch::find_load() {
  absent_.assign(2 * ops_ + 1, 0);
  for (std::size_t i = 0; i < items_.size(); ++i) {
    if (state_[i] == kStays) continue;
    std::size_t first = at(items_[i].from) + 1;
    std::size_t last = at(deadline_[i]);
    if (state_[i] == kCopied && !items_[i].dead) {
      first = first_op_from(copies_[i].out_end);
      last = ops_over_by(copies_[i].in_start + (items_[i].wraps ? period_ : 0));
    }
    if (first >= last) continue;
    absent_[first] += items_[i].bytes;
    absent_[last] -= items_[i].bytes;
  }
  double gone = 0;
  for (std::size_t op = 0; op < 2 * ops_; ++op) absent_[op] = gone += absent_[op];
  load_.resize(ops_);
  for (std::size_t op = 0; op < ops_; ++op) {
    load_[op] = kept_load_[op] - absent_[op] - absent_[ops_ + op];
  }
}

/// With which a byte that leaves for all of the iteration pays for a part of its copy in.
double PriceSearch::first_price() const {
  constexpr double kPart = 0.2;
  constexpr Bytes kMib = 1 << 20;
  return kPart * count_of(lowering_.machine().from_away().time(kMib)) / count_of(kMib) /
         static_cast<double>(ops_);
}

/// By the whole step where the load is off by kBand of the limit or more.
void PriceSearch::change_prices(double limit, double step) {
  constexpr double kBand = 0.03;
  constexpr double kLeast = 1e-3;
  const double least = kLeast * first_price();
  for (std::size_t op = 0; op < ops_; ++op) {
    const double off = std::clamp((load_[op] - limit) / (kBand * limit), -1.0, 1.0);
    price_at_[op] = std::max(price_at_[op] * std::exp(step * off), least);
  }
}

double PriceSearch::lost_by_sources(const RemakableGap& gap, OpId deadline, int depth) const {
  constexpr int kDeepest = 4;
  double lost = 0;
  for (const GapId g : gap.sources) {
    const std::int32_t s = item_of_[at(g)];
    if (s == kNone || state_[at(s)] == kStays) continue;
    const OpId before = deadline_[at(s)];
    if (before <= deadline || items_[at(s)].from >= deadline) continue;
    lost += items_[at(s)].bytes * price(at(deadline), at(before));
    if (state_[at(s)] == kRemade && depth < kDeepest) {
      lost += lost_by_sources(remakable_[at(items_[at(s)].remakable)], deadline, depth + 1);
    }
  }
  return lost;
}

double PriceSearch::gain_of_copies(std::size_t i) const {
  const Item& item = items_[i];
  const Copy& copy = copies_[i];
  constexpr double kCopyWeight = 0.002;
  const double back = copy.in_start + (item.wraps ? period_ : 0);
  const double saved = item.bytes * price(first_op_from(copy.out_end), ops_over_by(back));
  const double out = copies_out(i) ? item.out : 0;
  return saved - out * (copy.out_price + kCopyWeight) - item.in * (copy.in_price + kCopyWeight);
}

double PriceSearch::gain_of_remaking(std::size_t i) const {
  const Item& item = items_[i];
  const RemakableGap& made = remakable_[at(item.remakable)];
  return item.bytes * price(at(item.from) + 1, at(deadline_[i])) - count_of(made.time) -
         lost_by_sources(made, deadline_[i], 0);
}

/// Of being away: how, and what that saves.
std::pair<char, double> PriceSearch::best_gain(std::size_t i) const {
  const double copied = gain_of_copies(i);
  const double remade = items_[i].remakable != kNone ? gain_of_remaking(i) : copied;
  return remade > copied ? std::pair{kRemade, remade} : std::pair{kCopied, copied};
}

void PriceSearch::decide(Random& random, double part) {
  for (std::size_t i = 0; i < items_.size(); ++i) {
    if (items_[i].dead || random.uniform() >= part) continue;
    const auto [away, gain] = best_gain(i);
    state_[i] = gain > 0 ? away : kStays;
  }
}

template <class See>
void PriceSearch::for_each_part(std::size_t i, See&& see) const {
  const Item& item = items_[i];
  const OpId begin = item.from + 1;
  see(begin, item.wraps ? static_cast<OpId>(ops_) : deadline_[i]);
  if (item.wraps) see(OpId{0}, deadline_[i]);
}

/// The state. What stays although not even copies that take no time leave room for it goes away
/// too, the cheapest for its bytes first.
AwayGaps PriceSearch::with_room(double limit) const {
  std::vector<Bytes> kept;
  for (const double load : kept_load_) kept.push_back(static_cast<Bytes>(load));
  PeakCurve curve(kept);
  StabbingTree others(ops_);
  const auto leave = [&](std::size_t i) {
    const auto bytes = static_cast<Bytes>(items_[i].bytes);
    for_each_part(i, [&](OpId begin, OpId end) { curve.lower(begin, end, bytes); });
  };
  AwayGaps away(lowering_.index().gaps().size(), kStays);
  for (std::size_t i = 0; i < items_.size(); ++i) {
    away[at(items_[i].gap)] = state_[i];
    if (state_[i] != kStays) {
      leave(i);
      continue;
    }
    const double value = best_gain(i).second / items_[i].bytes;
    for_each_part(i, [&](OpId begin, OpId end) {
      others.add(static_cast<std::int32_t>(i), begin, end, value);
    });
  }
  constexpr auto as_before = [](std::int32_t) { return std::numeric_limits<double>::infinity(); };
  while (count_of(curve.peak()) > limit) {
    const std::int32_t best = others.highest_over(curve.peak_op(), as_before);
    if (best == kNone) break;
    others.remove(best);
    leave(at(best));
    away[at(items_[at(best)].gap)] = best_gain(at(best)).first;
  }
  return away;
}

/// One sweep: what all gaps cost at the present prices, and what the load then is.
void PriceSearch::look() {
  constexpr double kWindows = 400;  // in an iteration
  find_deadlines();
  make_timeline();
  for (std::size_t op = 0; op < 2 * ops_; ++op) {
    prices_[op + 1] = prices_[op] + price_at_[op % ops_];
  }
  window_ = period_ / kWindows;
  time_copies_out();
  time_copies_in();
  find_load();
}

void PriceSearch::look_at(const AwayGaps& away) {
  for (std::size_t i = 0; i < items_.size(); ++i) state_[i] = away[at(items_[i].gap)];
  look();
}

double PriceSearch::saved(std::size_t gap, char away) const {
  const std::int32_t i = item_of_[gap];
  if (i == kNone || away == kStays || items_[at(i)].dead) return 0;
  if (away == kCopied) return gain_of_copies(at(i));
  return items_[at(i)].remakable != kNone ? gain_of_remaking(at(i)) : 0;
}

/// Ever smaller changes: at first of many gaps, and of prices by much.
std::vector<AwayGaps> PriceSearch::run(Bytes load_limit, const Options& options) {
  constexpr double kStep = 0.15;
  constexpr double kChanged = 0.3;
  constexpr double kCooling = 0.1;
  constexpr int kSweepsAState = 8;
  const double limit = count_of(load_limit);
  Random random(options.seed);
  std::vector<AwayGaps> states;
  if (price_at_.empty()) price_at_.assign(ops_, first_price());
  for (int sweep = 0; sweep < options.sweeps && !options.stop.requested(); ++sweep) {
    look();
    const int left = options.sweeps - sweep - 1;
    if (left < options.states * kSweepsAState && left % kSweepsAState == 0) {
      states.push_back(with_room(limit));
    }
    const double cooled = std::pow(kCooling, static_cast<double>(sweep) / options.sweeps);
    change_prices(limit, kStep * cooled);
    decide(random, kChanged * cooled);
  }
  return states;
}

}  // namespace tidepool
