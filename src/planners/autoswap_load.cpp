#include "planners/autoswap_load.h"

#include <algorithm>
#include <array>
#include <limits>

#include "planners/bayesian_optimisation.h"

namespace tidepool {
namespace {

Point point_of(const SwapWeights& weights) { return {weights.begin(), weights.end()}; }

SwapWeights weights_of(const Point& point) {
  SwapWeights weights{};
  std::copy(point.begin(), point.end(), weights.begin());
  return weights;
}

LoadedSelection timed(Evaluator& evaluator, SwapOrder& order, Bytes limit, Bytes selected_for) {
  LoadedSelection result;
  result.weights = order.weights();
  result.selected_for = selected_for;
  result.selection = order.select(selected_for);
  result.evaluation = evaluator.evaluate(result.selection.strategy, {limit});
  return result;
}

}  // namespace

LoadedSelection select_under_load(Evaluator& evaluator, const SwapCandidates& candidates,
                                  const SwapWeights& weights, Bytes limit) {
  SwapOrder order(candidates, weights);
  return timed(evaluator, order, limit, limit);
}

LoadedSelection search_weights(Evaluator& evaluator, const SwapCandidates& candidates, Bytes limit,
                               Bytes selected_for, const WeightSearchOptions& options) {
  LoadedSelection best;
  const auto time = [&](const Point& point) {
    SwapOrder order(candidates, weights_of(point));
    LoadedSelection next = timed(evaluator, order, limit, selected_for);
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
  search.enough = to_seconds(candidates.compute_time());
  search.cancelled = options.cancelled;
  bayesian_minimise(time, {Point(4, -1.0), Point(4, 1.0)}, start, search);
  return best;
}

namespace {

class LeastLoadSearch {
 public:
  LeastLoadSearch(Evaluator& evaluator, const SwapCandidates& candidates, double tolerance,
                  const WeightSearchOptions& options)
      : evaluator_(evaluator), candidates_(candidates), options_(options) {
    allowed_ = Nanos{static_cast<Nanos::rep>(
        tolerance * static_cast<double>(candidates.compute_time().count()))};
    const Bytes peak = *std::max_element(candidates.load().begin(), candidates.load().end());
    step_ = std::max<Bytes>(peak / kSteps, 1);
    SwapOrder order(candidates, only(SwapScore::doa));
    best_ = {peak, timed(evaluator, order, peak, peak)};
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

  [[nodiscard]] bool cancelled() const { return options_.cancelled && options_.cancelled(); }
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
  Nanos allowed_{};
  Bytes step_ = 1;
  LeastLoad best_;
};

}  // namespace

LeastLoad least_load(Evaluator& evaluator, const SwapCandidates& candidates, double tolerance,
                     const WeightSearchOptions& options) {
  return LeastLoadSearch(evaluator, candidates, tolerance, options).run();
}

}  // namespace tidepool
