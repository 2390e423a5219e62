#include "planners/autoswap.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "ir/load_profile.h"

namespace tidepool {
namespace {

std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }

OpId peak_op(std::span<const Bytes> load) {
  return static_cast<OpId>(std::max_element(load.begin(), load.end()) - load.begin());
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

SwapCandidates::SwapCandidates(const Program& program, const AccessIndex& index,
                               const Machine& machine, std::vector<std::int32_t> algorithms)
    : program_(program), index_(index), machine_(machine), algorithms_(std::move(algorithms)) {
  Nanos now{0};
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    start_.push_back(now);
    const Op& op = program.ops[i];
    if (op.place == OpPlace::device) now += op.algorithms[at(algorithms_[i])].time;
  }
  start_.push_back(now);
  const LoadProfile profile = load_profile(program, index, machine.alignment, algorithms_);
  load_ = profile.at_op;
  integrate(load_, area_);
  for (GapId g = 0; g < static_cast<GapId>(index.gaps().size()); ++g) {
    const Gap& gap = index.gaps()[at(g)];
    const bool large = program.tensors[at(gap.tensor)].bytes >= kSmallest;
    if (gap.kind == GapKind::device && large && spans(gap, profile.peak_op))
      candidates_.push_back(g);
  }
}

/// The op runs while the gap's tensor is idle.
bool SwapCandidates::spans(const Gap& gap, OpId op) const {
  return gap.wraps ? op > gap.from || op < gap.to : op > gap.from && op < gap.to;
}

Nanos SwapCandidates::duration(const Gap& gap) const {
  const Nanos idle = start_[at(gap.to)] - start_[at(gap.from) + 1];
  return gap.wraps ? idle + start_.back() : idle;
}

void SwapCandidates::take_out(std::vector<Bytes>& load, GapId g) const {
  const Gap& gap = index_.gaps()[at(g)];
  const Bytes bytes = align_up(program_.tensors[at(gap.tensor)].bytes, machine_.alignment);
  for (OpId op = 0; op < static_cast<OpId>(load.size()); ++op) {
    if (spans(gap, op)) load[at(op)] -= bytes;
  }
}

void SwapCandidates::integrate(std::span<const Bytes> load, std::vector<double>& area) const {
  area.resize(load.size() + 1);
  double sum = 0;
  for (std::size_t op = 0; op < load.size(); ++op) {
    area[op] = sum;
    sum += static_cast<double>(load[op]) * to_seconds(start_[op + 1] - start_[op]);
  }
  area.back() = sum;
}

double SwapCandidates::score(SwapScore score, GapId g, std::span<const Bytes> load) const {
  std::vector<double> area;
  integrate(load, area);
  return score_by_area(score, g, area);
}

double SwapCandidates::score_by_area(SwapScore score, GapId g, std::span<const double> area) const {
  const Gap& gap = index_.gaps()[at(g)];
  if (score == SwapScore::wdoa || score == SwapScore::swdoa) {
    const double span = area[at(gap.to)] - area[at(gap.from) + 1];
    return gap.wraps ? span + area.back() : span;
  }
  const Bytes bytes = program_.tensors[at(gap.tensor)].bytes;
  const double absence =
      to_seconds(duration(gap) - machine_.to_host.time(bytes) - machine_.to_device.time(bytes));
  const double size = static_cast<double>(bytes);
  if (score == SwapScore::doa) return absence;
  return absence >= 0 ? absence * size : absence / size;
}

SwapCandidates::Selection SwapCandidates::select(SwapScore kind, Bytes limit) const {
  Selection result;
  result.strategy = keep_everything(program_, index_, algorithms_);
  Strategy& strategy = result.strategy;
  std::vector<Bytes> load = load_;
  std::vector<double> area = area_;
  const auto value = [&](GapId g) { return score_by_area(kind, g, area); };
  const auto take = [&](GapId g) {
    strategy.gaps[at(g)] = Decision::swap;
    take_out(load, g);
    if (kind == SwapScore::swdoa) integrate(load, area);
  };
  // The best of a list by score; the first of equals.
  const auto best_of = [&](const std::vector<GapId>& list) {
    return std::max_element(list.begin(), list.end(),
                            [&](GapId a, GapId b) { return value(a) < value(b); });
  };

  std::vector<GapId> left = candidates_;
  while (!left.empty() && load[at(peak_op(load))] > limit) {
    const auto best = best_of(left);
    result.picks.push_back({*best, value(*best), true});
    take(*best);
    left.erase(best);
  }
  // Below load_min: any gap over the current peak (spec, Selection).
  std::vector<GapId> over_peak;
  while (load[at(peak_op(load))] > limit) {
    const OpId peak = peak_op(load);
    over_peak.clear();
    for (GapId g = 0; g < static_cast<GapId>(index_.gaps().size()); ++g) {
      const Gap& gap = index_.gaps()[at(g)];
      const bool free = gap.kind == GapKind::device && strategy.gaps[at(g)] == Decision::keep;
      if (free && spans(gap, peak)) over_peak.push_back(g);
    }
    if (over_peak.empty()) break;
    const GapId best = *best_of(over_peak);
    result.picks.push_back({best, value(best), false});
    take(best);
  }
  result.peak = load[at(peak_op(load))];
  return result;
}

Bytes SwapCandidates::load_min() const {
  std::vector<Bytes> load = load_;
  for (const GapId g : candidates_) take_out(load, g);
  return load[at(peak_op(load))];
}

namespace {

class AutoSwap : public Planner {
 public:
  Result<PlannerOutput> plan(Workload&, Lowering& lowering, const Budget& budget,
                             const PlannerOptions& options) override {
    const Program& program = lowering.program();
    const SwapCandidates candidates(program, lowering.index(), lowering.machine(),
                                    choose_algorithms(program, options.algorithms));
    std::vector<Scored> scored = score_all(candidates, lowering, budget.device);
    sort_by_time_then_traffic(scored);

    PlannerOutput output;
    LowerOptions placing;
    placing.allow_streaming = false;
    const Scored* chosen = nullptr;
    for (const Scored& s : scored) {
      // Placement can only add time to what the evaluator says.
      if (output.lowered && s.time >= output.lowered->iteration_time) continue;
      auto lowered = lowering.lower(s.selection.strategy, budget, placing);
      if (!lowered) continue;
      if (output.lowered && lowered->iteration_time >= output.lowered->iteration_time) continue;
      output.lowered = std::move(*lowered);
      chosen = &s;
      if (output.lowered->iteration_time == s.time) break;
    }
    if (chosen == nullptr) {
      output.notes.push_back(fmt::format(
          "no selection fits {}: the streaming schedule is used; the smallest load with every "
          "candidate swapped (load_min) is {}",
          format_bytes(budget.device), format_bytes(candidates.load_min())));
      output.strategy = candidates.select(SwapScore::swdoa, 0).strategy;
      output.strategy.planner = kName;
      return output;
    }
    output.lowered->strategy.reasons = reasons(*chosen);
    output.strategy = output.lowered->strategy;
    const auto used = std::count_if(chosen->selection.picks.begin(), chosen->selection.picks.end(),
                                    [](const auto& pick) { return pick.candidate; });
    const auto others = static_cast<std::ptrdiff_t>(chosen->selection.picks.size()) - used;
    output.notes.push_back(fmt::format("score {} at load limit {}: {} of {} candidates",
                                       to_string(chosen->score), format_bytes(chosen->limit), used,
                                       candidates.candidates().size()));
    if (others > 0) {
      output.notes.push_back(
          fmt::format("load_min is {}: {} gaps beyond the candidates are swapped too",
                      format_bytes(candidates.load_min()), others));
    }
    return output;
  }

 private:
  static constexpr const char* kName = "autoswap";

  struct Scored {
    SwapCandidates::Selection selection;
    SwapScore score{};
    Bytes limit = 0;
    Nanos time{};
    Bytes swapped = 0;
  };

  /// Fastest first; among times within a thousandth of the fastest, the one that moves least.
  static void sort_by_time_then_traffic(std::vector<Scored>& scored) {
    Nanos fastest = Nanos::max();
    for (const Scored& s : scored) fastest = std::min(fastest, s.time);
    const auto as_fast = [&](const Scored& s) { return s.time <= fastest + fastest / 1000; };
    std::stable_sort(scored.begin(), scored.end(), [&](const Scored& a, const Scored& b) {
      if (as_fast(a) != as_fast(b)) return as_fast(a);
      return as_fast(a) ? a.swapped < b.swapped : a.time < b.time;
    });
  }

  /// Every score at the budget and at tighter limits (the footprint is larger than the load, and
  /// copies take time to leave), timed under the budget.
  static std::vector<Scored> score_all(const SwapCandidates& candidates, Lowering& lowering,
                                       Bytes budget) {
    constexpr std::array<double, 12> kTighter{1.0,  0.99, 0.98, 0.96, 0.94, 0.91,
                                              0.88, 0.84, 0.8,  0.7,  0.5,  0.0};
    std::vector<Scored> scored;
    for (const SwapScore score : kSwapScores) {
      std::size_t last_picks = 0;
      for (const double factor : kTighter) {
        Scored s;
        s.score = score;
        s.limit = static_cast<Bytes>(static_cast<double>(budget) * factor);
        s.selection = candidates.select(score, s.limit);
        // A tighter limit only adds picks: the same number is the same selection.
        if (factor < 1.0 && s.selection.picks.size() == last_picks) continue;
        last_picks = s.selection.picks.size();
        s.selection.strategy.planner = kName;
        const Evaluation evaluation =
            lowering.evaluator().evaluate(s.selection.strategy, {budget, true});
        if (!evaluation.feasible) continue;
        s.time = evaluation.iteration_time;
        for (const SwapCandidates::Pick& pick : s.selection.picks) {
          const TensorId tensor = lowering.index().gaps()[at(pick.gap)].tensor;
          s.swapped += lowering.program().tensors[at(tensor)].bytes;
        }
        scored.push_back(std::move(s));
      }
    }
    return scored;
  }

  static std::vector<std::string> reasons(const Scored& chosen) {
    const Strategy& strategy = chosen.selection.strategy;
    std::vector<std::string> out(strategy.gaps.size(), "kept: the load fits without it");
    for (std::size_t i = 0; i < chosen.selection.picks.size(); ++i) {
      const SwapCandidates::Pick& pick = chosen.selection.picks[i];
      out[at(pick.gap)] = fmt::format("{}, pick {} by {} (score {:.4g})",
                                      pick.candidate ? "candidate" : "beyond the candidates", i + 1,
                                      to_string(chosen.score), pick.score);
    }
    return out;
  }
};

}  // namespace

std::unique_ptr<Planner> make_autoswap() { return std::make_unique<AutoSwap>(); }

}  // namespace tidepool
