#include "planners/random.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/random.h"
#include "planners/registry.h"
#include "planners/toolkit/candidate_gaps.h"
#include "planners/toolkit/load_limit.h"
#include "planners/toolkit/strategy_builder.h"

namespace tidepool {
namespace {

class RandomPlanner : public Planner {
 public:
  [[nodiscard]] std::string_view name() const override { return "random"; }

  Result<PlannerOutput> plan(PlannerContext& context) override {
    const Lowering& lowering = context.lowering();
    LoadLimit limit(context.budget().device, kSteps);
    const Stop late = context.stopped_or_late();
    const std::int64_t most = context.options().evaluation_limit;
    std::int64_t trials = most > 0 ? most : kAttempts * kMostTrials;
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      if (context.stopped()) return fail(ErrorCode::interrupted, "interrupted while planning");
      if (attempt > 0 && late.requested()) break;
      // Small budgets leave no room to copy in ahead; and where the load fits but its addresses do
      // not, there must be some for holes.
      LowerOptions as_drawn;
      as_drawn.prefetch = attempt % 2 == 0;
      const Strategy strategy = draw(
          context, {limit.bytes(), as_drawn.prefetch},
          hash_combine(context.options().seed, static_cast<std::uint64_t>(attempt)), late, trials);
      Trial trial = place(context.lowering(), strategy, context.budget(), as_drawn);
      if (trial.lowered) {
        return PlannerOutput{std::move(*trial.lowered), {count(lowering.index(), strategy)}};
      }
      if (!as_drawn.prefetch) limit.tighten(0);
    }
    // Whatever fits at all is streamed; an error names the smallest feasible budget.
    return PlannerOutput{context.everything_kept(), {}};
  }

 private:
  static constexpr int kAttempts = 8;
  static constexpr Bytes kSteps = 25;  // by which the limit goes down, parts of the budget
  static constexpr std::int64_t kMostTrials = 4000;  // of an attempt

  /// From everything away to a random mixture, one gap at a time, as long as it can be timed.
  /// `left`: trials of all attempts.
  static Strategy draw(PlannerContext& context, const EvaluateOptions& timing, std::uint64_t seed,
                       const Stop& late, std::int64_t& left) {
    Lowering& lowering = context.lowering();
    Random random(seed);
    StrategyBuilder builder(lowering.program(), lowering.index(),
                            context.algorithms(lowering.program()));
    const MayDecide& may = context.options().may;
    std::vector<GapId> order = candidate_gaps(lowering.program(), lowering.index(), 0);
    const auto begin_with = [&](GapId g) { may.swap ? builder.away(g) : builder.keep(g); };
    for (const GapId g : order) begin_with(g);
    std::shuffle(order.begin(), order.end(), random);
    std::int64_t trials = std::min(left, kMostTrials);
    left -= trials;
    for (const GapId g : order) {
      const std::uint64_t chosen = random.below(4);
      if (chosen >= 2 || (chosen == 1 && !may.recompute)) continue;
      if (trials-- == 0 || late.requested()) break;
      chosen == 0 ? builder.keep(g) : builder.recompute(g);
      if (!lowering.evaluator().evaluate(builder.strategy(), timing).feasible) begin_with(g);
    }
    return builder.strategy();
  }

  static std::string count(const AccessIndex& index, const Strategy& strategy) {
    std::array<int, 4> counts{};
    for (std::size_t g = 0; g < strategy.gaps.size(); ++g) {
      if (index.gaps()[g].kind != GapKind::device) continue;
      ++counts[static_cast<std::size_t>(strategy.gaps[g])];
    }
    return fmt::format("gaps: {} kept, {} swapped, {} dropped, {} recomputed", counts[0], counts[1],
                       counts[2], counts[3]);
  }
};

}  // namespace

std::unique_ptr<Planner> make_random() { return std::make_unique<RandomPlanner>(); }

PlannerInfo random_planner() {
  return {.name = "random",
          .description = "keeps, swaps, drops and recomputes at random, from a seed",
          .make = make_random,
          .seeds_searches = false};
}

}  // namespace tidepool
