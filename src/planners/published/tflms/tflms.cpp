#include "planners/published/tflms/tflms.h"

#include <fmt/format.h>

#include <algorithm>

#include "planners/published/tflms/swap_edges.h"
#include "planners/registry.h"
#include "planners/toolkit/load_limit.h"
#include "planners/toolkit/published_output.h"

namespace tidepool {
namespace {

/// Strategies of one program under limits on the load.
class EdgeTuning {
 public:
  explicit EdgeTuning(PlannerContext& context)
      : context_(context),
        lowering_(context.lowering()),
        levels_(topological_levels(lowering_.program())),
        highest_(levels_.empty() ? 0 : *std::max_element(levels_.begin(), levels_.end())) {}

  struct Tuned {
    EdgeParameters parameters;
    Nanos time = Nanos::max();
  };

  [[nodiscard]] Strategy strategy(const EdgeParameters& parameters) const {
    return swap_edges(lowering_.program(), lowering_.index(), levels_, parameters,
                      context_.algorithms(lowering_.program()));
  }

  /// The fastest of those with the largest thresholds; no time where none fits.
  [[nodiscard]] Tuned tune(Bytes limit) {
    Tuned best;
    for (const std::int32_t group : {0, 2, 8}) {
      for (const std::int32_t ahead : {1, 2, 4, 8, 16}) {
        if (context_.stopped()) return best;
        const Tuned next = largest_threshold({0, group, ahead}, limit);
        if (next.time < best.time) best = next;
      }
    }
    return best;
  }

 private:
  [[nodiscard]] Nanos time(const EdgeParameters& parameters, Bytes limit) {
    const Evaluation e =
        lowering_.evaluator().evaluate(strategy(parameters), {.load_limit = limit});
    return e.feasible ? e.iteration_time : Nanos::max();
  }

  /// By bisection: with a smaller threshold more is swapped.
  [[nodiscard]] Tuned largest_threshold(EdgeParameters parameters, Bytes limit) {
    Tuned best;
    const auto attempt = [&](std::int32_t threshold) {
      parameters.threshold = threshold;
      const Nanos took = time(parameters, limit);
      if (took != Nanos::max()) best = {parameters, took};
      return took != Nanos::max();
    };
    if (attempt(highest_) || !attempt(0)) return best;
    std::int32_t fits = 0;
    std::int32_t too_large = highest_;
    while (too_large - fits > 1) {
      const std::int32_t middle = fits + (too_large - fits) / 2;
      (attempt(middle) ? fits : too_large) = middle;
    }
    return best;
  }

  PlannerContext& context_;
  Lowering& lowering_;
  std::vector<std::int32_t> levels_;
  std::int32_t highest_;
};

class Tflms : public Planner {
 public:
  [[nodiscard]] std::string_view name() const override { return "tflms"; }

  Result<PlannerOutput> plan(PlannerContext& context) override {
    if (!context.options().may.swap) return PlannerOutput{context.everything_kept(), {}};
    EdgeTuning tuning(context);
    const Bytes budget = context.budget().device;
    std::optional<Lowered> best;
    EdgeParameters chosen;
    LoadLimit limit(budget, kSteps);
    for (int i = 0; i < kTries && limit.bytes() > 0 && (i == 0 || !context.stopped()); ++i) {
      const EdgeTuning::Tuned tuned = tuning.tune(limit.bytes());
      if (tuned.time == Nanos::max()) break;
      LowerOptions options;
      options.load_limit = limit.bytes();
      options.attempts = 1;
      if (best) options.faster_than = best->iteration_time;
      Trial trial = tidepool::place(context.lowering(), tuning.strategy(tuned.parameters),
                                    context.budget(), options);
      if (trial.lowered && trial.lowered->iteration_time < options.faster_than) {
        best = std::move(trial.lowered);
        chosen = tuned.parameters;
        if (best->iteration_time == best->unplaced_time) break;
      }
      limit.tighten(trial.needed > 0 ? trial.excess(context.budget()) : 0);
    }
    if (!best && context.stopped())
      return fail(ErrorCode::interrupted, "interrupted while planning");
    if (!best) return cannot_train(context, "no threshold leaves few enough tensors", "TFLMS");
    return PlannerOutput{
        std::move(*best),
        {fmt::format("edges over more than {} levels are swapped, {} levels share a copy in, "
                     "which starts {} levels ahead",
                     chosen.threshold, chosen.group, chosen.ahead)}};
  }

 private:
  static constexpr Bytes kSteps = 25;
  static constexpr int kTries = 8;
};

}  // namespace

std::unique_ptr<Planner> make_tflms() { return std::make_unique<Tflms>(); }

PlannerInfo tflms_planner() {
  return {.name = "tflms",
          .description = "swaps what is read many topological levels later, tuned (TFLMS)",
          .make = make_tflms,
          .is_slow = true};
}

}  // namespace tidepool
