#include "planners/toolkit/swap_candidates.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/at.h"
#include "ir/load_profile.h"
#include "planners/toolkit/candidate_gaps.h"
#include "planners/toolkit/strategy_builder.h"
#include "planners/toolkit/unstalled_starts.h"

namespace tidepool {
namespace {

constexpr auto kSwdoa = static_cast<std::size_t>(SwapScore::swdoa);

OpId peak_op(std::span<const Bytes> load) {
  return static_cast<OpId>(std::max_element(load.begin(), load.end()) - load.begin());
}

/// The score that the weights leave as it is, if they do.
std::optional<SwapScore> single_score(const SwapWeights& weights) {
  std::optional<SwapScore> single;
  for (const SwapScore score : kSwapScores) {
    const double weight = weights[static_cast<std::size_t>(score)];
    if (weight == 0) continue;
    if (single || weight < 0) return std::nullopt;
    single = score;
  }
  return single;
}

}  // namespace

std::string_view to_string(SwapScore score) {
  switch (score) {
    case SwapScore::doa:
      return "DOA";
    case SwapScore::aoa:
      return "AOA";
    case SwapScore::wdoa:
      return "WDOA";
    case SwapScore::swdoa:
      return "SWDOA";
  }
  return "?";
}

std::string to_string(const SwapWeights& weights) {
  if (const auto single = single_score(weights)) return std::string(to_string(*single));
  std::string text;
  for (const SwapScore score : kSwapScores) {
    const double weight = weights[static_cast<std::size_t>(score)];
    if (weight == 0) continue;
    const char* sign = text.empty() ? (weight < 0 ? "-" : "") : (weight < 0 ? " - " : " + ");
    text += fmt::format("{}{:.2f} {}", sign, std::abs(weight), to_string(score));
  }
  return text.empty() ? "no score" : text;
}

SwapCandidates::SwapCandidates(const Program& program, const AccessIndex& index,
                               const Machine& machine, std::vector<std::int32_t> algorithms,
                               Bytes smallest)
    : program_(program),
      index_(index),
      machine_(machine),
      algorithms_(std::move(algorithms)),
      smallest_(smallest) {
  start_ = unstalled_starts(program, algorithms_);
  const LoadProfile profile = load_profile(program, index, machine.alignment(), algorithms_);
  load_ = profile.at_op;
  area_ = AreaCurve(load_, start_);
  for (const GapId g : candidate_gaps(program, index, smallest)) {
    if (spans(index.gaps()[at(g)], profile.peak_op)) candidates_.push_back(g);
  }
  score_candidates();
}

void SwapCandidates::score_candidates() {
  for (const GapId g : candidates_) {
    std::array<double, 4>& scores = scores_.emplace_back();
    for (const SwapScore score : kSwapScores) {
      scores[static_cast<std::size_t>(score)] = score_by_area(score, g, area_);
    }
  }
  score_by_pick_order();
  if (scores_.empty()) return;
  const auto n = static_cast<double>(scores_.size());
  for (std::size_t s = 0; s < spread_.size(); ++s) {
    double sum = 0;
    for (const auto& scores : scores_) sum += scores[s];
    const double mean = sum / n;
    double squares = 0;
    for (const auto& scores : scores_) squares += (scores[s] - mean) * (scores[s] - mean);
    const double deviation = std::sqrt(squares / n);
    spread_[s] = {mean, deviation > 0 ? deviation : 1};
  }
}

/// SWDOA by its own picking order: the curve sinks with each pick (section IV-B, Fig. 6). So do the
/// scores of those left: who is best by its score of now and was best by those before, is the best.
void SwapCandidates::score_by_pick_order() {
  AreaCurve area = area_;
  struct Ranked {
    double score = 0;  ///< or above it
    std::size_t candidate = 0;
    bool operator<(const Ranked& other) const {
      return score != other.score ? score < other.score : candidate > other.candidate;
    }
  };
  std::vector<Ranked> heap;
  for (std::size_t i = 0; i < scores_.size(); ++i) heap.push_back({scores_[i][kSwdoa], i});
  std::make_heap(heap.begin(), heap.end());
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end());
    Ranked& last = heap.back();
    last.score = area_over(candidates_[last.candidate], area);
    if (heap.size() > 1 && last < heap.front()) {
      std::push_heap(heap.begin(), heap.end());
      continue;
    }
    scores_[last.candidate][kSwdoa] = last.score;
    take_out(area, candidates_[last.candidate]);
    heap.pop_back();
  }
}

bool SwapCandidates::spans(const Gap& gap, OpId op) {
  return gap.wraps ? op > gap.from || op < gap.to : op > gap.from && op < gap.to;
}

template <class See>
void SwapCandidates::for_each_part(GapId g, See&& see) const {
  const Gap& gap = index_.gaps()[at(g)];
  if (!gap.wraps) {
    see(gap.from + 1, gap.to);
    return;
  }
  see(gap.from + 1, static_cast<OpId>(load_.size()));
  see(0, gap.to);
}

template <class Curve>
void SwapCandidates::take_out(Curve& curve, GapId g) const {
  const Bytes bytes = aligned_bytes(g);
  for_each_part(g, [&](OpId begin, OpId end) { curve.lower(begin, end, bytes); });
}

double SwapCandidates::score(SwapScore score, GapId g, std::span<const Bytes> load) const {
  return score_by_area(score, g, AreaCurve(load, start_));
}

double SwapCandidates::area_over(GapId g, const AreaCurve& area) const {
  const Gap& gap = index_.gaps()[at(g)];
  const double span = area.until(gap.to) - area.until(gap.from + 1);
  return gap.wraps ? span + area.whole() : span;
}

double SwapCandidates::score_by_area(SwapScore score, GapId g, const AreaCurve& area) const {
  if (score == SwapScore::wdoa || score == SwapScore::swdoa) return area_over(g, area);
  const Gap& gap = index_.gaps()[at(g)];
  const Bytes bytes = program_.tensors[at(gap.tensor)].bytes;
  const double absence = to_seconds(idle_time(gap, start_) - machine_.to_away().time(bytes) -
                                    machine_.from_away().time(bytes));
  const auto size = static_cast<double>(bytes);
  if (score == SwapScore::doa) return absence;
  return absence >= 0 ? absence * size : absence / size;
}

Nanos SwapCandidates::out_time(GapId g) const {
  const Gap& gap = index_.gaps()[at(g)];
  return machine_.to_away().time(program_.tensors[at(gap.tensor)].bytes);
}

Nanos SwapCandidates::in_time(GapId g) const {
  const Gap& gap = index_.gaps()[at(g)];
  return machine_.from_away().time(program_.tensors[at(gap.tensor)].bytes);
}

Bytes SwapCandidates::aligned_bytes(GapId g) const {
  const Gap& gap = index_.gaps()[at(g)];
  return align_up(program_.tensors[at(gap.tensor)].bytes, machine_.alignment());
}

std::vector<Bytes> SwapCandidates::load_without(std::span<const GapId> gaps) const {
  PeakCurve curve(load_);
  for (const GapId g : gaps) take_out(curve, g);
  return curve.load();
}

SwapSelection SwapCandidates::select(SwapScore score, Bytes limit) const {
  return SwapOrder(*this, only(score)).select(limit);
}

Bytes SwapCandidates::load_min() const {
  const std::vector<Bytes> load = load_without(candidates_);
  return load[at(peak_op(load))];
}

SwapOrder::SwapOrder(const SwapCandidates& candidates, const SwapWeights& weights)
    : c_(candidates), weights_(weights), factors_(weights), curve_(candidates.load_) {
  if (!single_score(weights)) {
    for (std::size_t s = 0; s < factors_.size(); ++s) {
      factors_[s] /= c_.spread_[s].deviation;
      offset_ -= factors_[s] * c_.spread_[s].mean;
    }
  } else {
    for (double& factor : factors_) factor = factor > 0 ? 1 : 0;
  }
  for (std::size_t i = 0; i < c_.candidates_.size(); ++i) {
    ranked_.push_back({c_.candidates_[i], combine(c_.scores_[i]), true});
  }
  std::stable_sort(ranked_.begin(), ranked_.end(),
                   [](const SwapPick& a, const SwapPick& b) { return a.score > b.score; });
  peaks_.push_back(curve_.peak());
}

double SwapOrder::combine(const std::array<double, 4>& scores) const {
  double sum = offset_;
  for (std::size_t s = 0; s < scores.size(); ++s) sum += factors_[s] * scores[s];
  return sum;
}

std::size_t SwapOrder::picks_until(Bytes limit) {
  while (peaks_.back() > limit && pick_next()) {
  }
  const auto enough =
      std::find_if(peaks_.begin(), peaks_.end(), [limit](Bytes peak) { return peak <= limit; });
  return enough == peaks_.end() ? picks_.size() : static_cast<std::size_t>(enough - peaks_.begin());
}

bool SwapOrder::extend(std::size_t picks) {
  while (picks_.size() < picks && pick_next()) {
  }
  return picks_.size() >= picks;
}

SwapSelection SwapOrder::first(std::size_t picks) const {
  SwapSelection selection;
  StrategyBuilder builder(c_.program_, c_.index_, c_.algorithms_);
  selection.picks.assign(picks_.begin(), picks_.begin() + static_cast<std::ptrdiff_t>(picks));
  for (const SwapPick& pick : selection.picks) builder.away(pick.gap);
  selection.strategy = builder.strategy();
  selection.peak = peaks_[picks];
  return selection;
}

void SwapOrder::pick(GapId gap, double score, bool candidate) {
  picks_.push_back({gap, score, candidate});
  c_.take_out(curve_, gap);
  peaks_.push_back(curve_.peak());
  if (others_begun_ && factors_[kSwdoa] != 0) c_.take_out(area_, gap);
}

void SwapOrder::begin_others() {
  others_begun_ = true;
  std::vector<char> candidate(c_.index_.gaps().size(), 0);
  for (const GapId g : c_.candidates_) candidate[at(g)] = 1;
  for (const GapId g : candidate_gaps(c_.program_, c_.index_, 0)) {
    if (candidate[at(g)]) continue;
    std::array<double, 4> scores{};
    for (const SwapScore score : kSwapScores) {
      // SWDOA is added when the curve is known.
      if (score == SwapScore::swdoa) continue;
      scores[static_cast<std::size_t>(score)] = c_.score_by_area(score, g, c_.area_);
    }
    others_.push_back({g, combine(scores)});
  }
  if (factors_[kSwdoa] != 0) area_ = AreaCurve(curve_.load(), c_.start_);
  others_left_ = StabbingTree(c_.load_.size());
  for (std::size_t i = 0; i < others_.size(); ++i) {
    c_.for_each_part(others_[i].id, [&](OpId begin, OpId end) {
      others_left_.add(static_cast<std::int32_t>(i), begin, end, value_of(others_[i]));
    });
  }
}

bool SwapOrder::pick_next() {
  if (picks_.size() < ranked_.size()) {
    const SwapPick next = ranked_[picks_.size()];
    pick(next.gap, next.score, true);
    return true;
  }
  if (!others_begun_) begin_others();
  const std::int32_t best = best_other();
  if (best == kNone) return false;
  const Other& other = others_[at(best)];
  others_left_.remove(best);
  pick(other.id, value_of(other), false);
  return true;
}

double SwapOrder::value_of(const Other& other) const {
  const double per_area = factors_[kSwdoa];
  return per_area == 0 ? other.fixed : other.fixed + per_area * c_.area_over(other.id, area_);
}

std::int32_t SwapOrder::best_other() {
  const OpId peak = curve_.peak_op();
  if (factors_[kSwdoa] >= 0) {
    return others_left_.highest_over(peak,
                                     [this](std::int32_t i) { return value_of(others_[at(i)]); });
  }
  // The areas sink, so these values rise.
  std::int32_t best = kNone;
  double best_value = 0;
  others_left_.for_each_over(peak, [&](std::int32_t i) {
    const double value = value_of(others_[at(i)]);
    if (best != kNone && (value < best_value || (value == best_value && i > best))) return;
    best = i;
    best_value = value;
  });
  return best;
}

}  // namespace tidepool
