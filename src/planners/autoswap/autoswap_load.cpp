#include "planners/autoswap/autoswap_load.h"

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <utility>

#include "planners/toolkit/backward_copies.h"
#include "planners/toolkit/bayesian_optimisation.h"

namespace tidepool {
namespace {

Point point_of(const SwapWeights& weights) { return {weights.begin(), weights.end()}; }

SwapWeights weights_of(const Point& point) {
  SwapWeights weights{};
  std::copy(point.begin(), point.end(), weights.begin());
  return weights;
}

/// Selections under one limit and how they are timed.
struct Timing {
  Evaluator& evaluator;
  const SwapCandidates& candidates;
  Bytes limit = 0;
  CopyRule copies = CopyRule::early;

  LoadedSelection operator()(SwapOrder& order, Bytes selected_for) const {
    return (*this)(order, selected_for, order.select(selected_for));
  }

  LoadedSelection operator()(const SwapOrder& order, Bytes selected_for,
                             SwapSelection selection) const {
    LoadedSelection result;
    result.weights = order.weights();
    result.selected_for = selected_for;
    result.selection = std::move(selection);
    Strategy& strategy = result.selection.strategy;
    if (copies == CopyRule::published) {
      for (const SwapPick& pick : result.selection.picks) {
        strategy.gaps[static_cast<std::size_t>(pick.gap)] = Decision::swap;
      }
      strategy.hints = copies_in_backwards(candidates, result.selection.picks, limit);
    }
    result.evaluation = evaluator.evaluate(strategy, {limit});
    return result;
  }
};

/// The longest stall that counts as none.
Nanos tolerated_stall(const SwapCandidates& candidates, double tolerance) {
  return Nanos{
      static_cast<Nanos::rep>(tolerance * static_cast<double>(candidates.compute_time().count()))};
}

Bytes peak_of(const SwapCandidates& candidates) {
  return *std::max_element(candidates.load().begin(), candidates.load().end());
}

}  // namespace

LoadedSelection select_under_load(Evaluator& evaluator, const SwapCandidates& candidates,
                                  const SwapWeights& weights, Bytes limit, CopyRule copies) {
  SwapOrder order(candidates, weights);
  return Timing{evaluator, candidates, limit, copies}(order, limit);
}

std::vector<LoadedSelection> select_for_tighter(Evaluator& evaluator,
                                                const SwapCandidates& candidates, Bytes limit,
                                                const Stop& stop) {
  constexpr std::array<double, 12> kTighter{1.0,  0.99, 0.98, 0.96, 0.94, 0.91,
                                            0.88, 0.84, 0.8,  0.7,  0.5,  0.0};
  const Timing timed{evaluator, candidates, limit, CopyRule::early};
  std::vector<LoadedSelection> found;
  std::set<std::vector<Decision>> seen;
  for (const SwapScore score : kSwapScores) {
    SwapOrder order(candidates, only(score));
    for (const double factor : kTighter) {
      if (stop.requested()) return found;
      const auto selected_for = static_cast<Bytes>(static_cast<double>(limit) * factor);
      SwapSelection selection = order.select(selected_for);
      if (!seen.insert(selection.strategy.gaps).second) continue;
      LoadedSelection next = timed(order, selected_for, std::move(selection));
      if (next.evaluation.feasible) found.push_back(std::move(next));
    }
  }
  return found;
}

WeightSearchOptions published_search(std::uint64_t seed, Stop stop) {
  WeightSearchOptions options;
  options.seed = seed;
  options.stop = std::move(stop);
  options.copies = CopyRule::published;
  options.to_the_end = true;
  return options;
}

LoadedSelection search_weights(Evaluator& evaluator, const SwapCandidates& candidates, Bytes limit,
                               Bytes selected_for, const WeightSearchOptions& options) {
  LoadedSelection best;
  const Timing timed{evaluator, candidates, limit, options.copies};
  const auto time = [&](const Point& point) {
    SwapOrder order(candidates, weights_of(point));
    LoadedSelection next = timed(order, selected_for);
    const Evaluation& e = next.evaluation;
    const bool better = !best.evaluation.feasible ||
                        (e.feasible && e.iteration_time < best.evaluation.iteration_time);
    const double value =
        e.feasible ? to_seconds(e.iteration_time) : std::numeric_limits<double>::infinity();
    if (better) best = std::move(next);
    return value;
  };
  std::array<Point, kSwapScores.size()> start;
  std::transform(kSwapScores.begin(), kSwapScores.end(), start.begin(),
                 [](SwapScore score) { return point_of(only(score)); });
  BayesianOptions search;
  search.evaluations = options.evaluations;
  search.seed = options.seed;
  if (!options.to_the_end) search.enough = to_seconds(candidates.compute_time());
  search.stop = options.stop;
  bayesian_minimise(time, {Point(4, -1.0), Point(4, 1.0)}, start, search);
  return best;
}

LoadedSelection fastest_under_load(Evaluator& evaluator, const SwapCandidates& candidates,
                                   Bytes limit, const WeightSearchOptions& options) {
  LoadedSelection best;
  const auto keep = [&](LoadedSelection&& next) {
    if (!next.evaluation.feasible) return;
    if (!best.evaluation.feasible ||
        next.evaluation.iteration_time < best.evaluation.iteration_time)
      best = std::move(next);
  };
  for (LoadedSelection& next : select_for_tighter(evaluator, candidates, limit, options.stop)) {
    keep(std::move(next));
  }
  const bool free = best.evaluation.feasible &&
                    best.evaluation.stall() <= tolerated_stall(candidates, kNoOverhead);
  if (!free) keep(search_weights(evaluator, candidates, limit, limit, options));
  return best;
}

namespace {

class LeastLoadSearch {
 public:
  LeastLoadSearch(Evaluator& evaluator, const SwapCandidates& candidates, double tolerance,
                  const WeightSearchOptions& options)
      : evaluator_(evaluator),
        candidates_(candidates),
        options_(options),
        allowed_(tolerated_stall(candidates, tolerance)) {
    const Bytes peak = peak_of(candidates);
    step_ = std::max<Bytes>(peak / kSteps, 1);
    best_ = {peak, select_under_load(evaluator, candidates, only(SwapScore::doa), peak)};
  }

  LeastLoad run() {
    for (const SwapScore score : kSwapScores) try_order(only(score));
    while (!cancelled() && combine_below()) {
    }
    // As it is under the least load.
    best_.selection.evaluation =
        evaluator_.evaluate(best_.selection.selection.strategy, {best_.bytes});
    return std::move(best_);
  }

 private:
  static constexpr Bytes kSteps = 1000;  // the result is known to a thousandth of the peak

  [[nodiscard]] bool cancelled() const { return options_.stop.requested(); }
  [[nodiscard]] bool without_overhead(const Evaluation& e) const {
    return e.feasible && e.stall() <= allowed_;
  }

  /// Every number of picks that the link has time for.
  void try_order(const SwapWeights& weights) {
    SwapOrder order(candidates_, weights);
    Nanos copies{0};
    for (std::size_t n = 0; !cancelled(); ++n) {
      if (n > 0) copies += candidates_.out_time(order.picks()[n - 1].gap);
      if (copies > candidates_.compute_time()) break;
      const Bytes limit = best_.bytes - step_;
      if (order.peak_after(n) <= limit) {
        const SwapSelection selection = order.first(n);
        if (without_overhead(evaluator_.evaluate(selection.strategy, {limit}))) {
          accept(weights, order.peak_after(n), selection, limit);
        }
      }
      if (!order.extend(n + 1)) break;
    }
  }

  /// BO under less, plain and for a tighter limit. Less load can be easier: another set is picked.
  bool combine_below() {
    constexpr std::array kLess{0.999, 0.98, 0.96, 0.94, 0.92, 0.9};
    constexpr std::array kTighter{1.0, 0.9};
    const auto part = [](Bytes bytes, double factor) {
      return static_cast<Bytes>(static_cast<double>(bytes) * factor);
    };
    const Bytes from = best_.bytes;
    for (const double less : kLess) {
      for (const double tighter : kTighter) {
        if (cancelled()) return false;
        const Bytes limit = part(from, less);
        const LoadedSelection found =
            search_weights(evaluator_, candidates_, limit, part(limit, tighter), options_);
        if (!without_overhead(found.evaluation)) continue;
        accept(found.weights, found.selected_for, found.selection, limit);
        try_order(found.weights);
        return true;
      }
    }
    return false;
  }

  /// A selection without overhead under `high`: how much less will do.
  void accept(const SwapWeights& weights, Bytes selected_for, const SwapSelection& selection,
              Bytes high) {
    Bytes low = selection.peak - 1;
    while (high - low > step_) {
      const Bytes middle = low + (high - low) / 2;
      const bool enough = without_overhead(evaluator_.evaluate(selection.strategy, {middle}));
      (enough ? high : low) = middle;
    }
    best_.bytes = high;
    best_.selection = {weights, selected_for, selection, {}};
  }

  Evaluator& evaluator_;
  const SwapCandidates& candidates_;
  WeightSearchOptions options_;
  Nanos allowed_;
  Bytes step_ = 1;
  LeastLoad best_;
};

}  // namespace

LeastLoad least_load(Evaluator& evaluator, const SwapCandidates& candidates, double tolerance,
                     const WeightSearchOptions& options) {
  return LeastLoadSearch(evaluator, candidates, tolerance, options).run();
}

LeastLoad least_plain_load(Evaluator& evaluator, const SwapCandidates& candidates, double tolerance,
                           const WeightSearchOptions& options) {
  constexpr Bytes kSteps = 200;
  const Bytes peak = peak_of(candidates);
  const Bytes step = std::max<Bytes>(peak / kSteps, 1);
  const Nanos allowed = tolerated_stall(candidates, tolerance);
  for (Bytes limit = candidates.load_min(); limit < peak; limit += step) {
    if (options.stop.requested()) break;
    LoadedSelection found = search_weights(evaluator, candidates, limit, limit, options);
    if (found.evaluation.feasible && found.evaluation.stall() <= allowed) {
      return {limit, std::move(found)};
    }
  }
  return {peak, select_under_load(evaluator, candidates, only(SwapScore::doa), peak)};
}

}  // namespace tidepool
