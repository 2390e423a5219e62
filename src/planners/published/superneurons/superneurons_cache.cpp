#include "planners/published/superneurons/superneurons_cache.h"

#include <fmt/format.h>

#include "base/at.h"
#include "base/counted.h"
#include "ir/load_profile.h"
#include "planners/published/superneurons/segment_policy.h"
#include "planners/published/superneurons/tensor_cache.h"
#include "planners/registry.h"
#include "planners/toolkit/load_limit.h"
#include "planners/toolkit/published_output.h"

namespace tidepool {
namespace {

/// Tensors that wait for backward in gaps that the policy has swapped.
std::vector<char> cached_tensors(const Lowering& lowering, const SegmentPolicy& policy) {
  std::vector<char> cached(lowering.program().tensors.size(), 0);
  StrategyBuilder builder = policy.builder();
  policy.decide_gaps(builder);
  const auto gaps = lowering.index().gaps();
  for (std::size_t g = 0; g < gaps.size(); ++g) {
    const Decision decision = builder.decision(static_cast<GapId>(g));
    const bool away = decision == Decision::swap || decision == Decision::drop;
    if (away) cached[at(gaps[g].tensor)] = 1;
  }
  return cached;
}

class SuperNeuronsCache : public Planner {
 public:
  [[nodiscard]] std::string_view name() const override { return "superneurons-cache"; }

  Result<PlannerOutput> plan(PlannerContext& context) override {
    constexpr Bytes kParts = 64;  // of the budget, steps of the limit
    const MayDecide& may = context.options().may;
    if (!may.swap) return PlannerOutput{context.everything_kept(), {}};
    Lowering& lowering = context.lowering();
    const Program& program = lowering.program();
    const SegmentPolicy policy(
        lowering, may,
        may.algorithms ? least_workspace_algorithms(program) : context.algorithms(program));
    const auto cached = cached_tensors(lowering, policy);
    const Bytes alignment = lowering.machine().alignment();
    const auto load = load_profile(program, lowering.index(), alignment, policy.algorithms()).at_op;
    LoadLimit limit(context.budget().device, kParts);
    while (limit.bytes() > 0 && !context.stopped()) {
      StrategyBuilder builder = policy.builder();
      const CacheRun run = run_tensor_cache(program, lowering.index(), load, cached, limit.bytes(),
                                            alignment, builder);
      if (!run.fits) break;
      const std::string note =
          fmt::format("{}, {}", counted(run.evictions, "eviction"), counted(run.fetches, "return"));
      Bytes excess = 0;
      if (auto placed = with_workspaces(context, builder.strategy(), may, excess)) {
        return PlannerOutput{std::move(*placed), {note}};
      }
      limit.tighten(excess);
    }
    return cannot_train(context, "what the cache may evict is not enough", "SuperNeurons");
  }

 private:
  /// With faster algorithms where they fit, else as it is.
  static std::optional<Lowered> with_workspaces(PlannerContext& context, const Strategy& strategy,
                                                const MayDecide& may, Bytes& excess) {
    Lowering& lowering = context.lowering();
    if (may.algorithms) {
      Strategy faster = strategy;
      choose_workspaces(lowering, context.budget().device, faster);
      Trial trial = place(lowering, faster, context.budget(), {});
      if (trial.lowered) return std::move(trial.lowered);
    }
    Trial trial = place(lowering, strategy, context.budget(), {});
    excess = trial.excess(context.budget());
    return std::move(trial.lowered);
  }
};

}  // namespace

std::unique_ptr<Planner> make_superneurons_cache() { return std::make_unique<SuperNeuronsCache>(); }

PlannerInfo superneurons_cache_planner() {
  return {.name = "superneurons-cache",
          .description = "swaps the least recently used outputs of convolutions (SuperNeurons)",
          .make = make_superneurons_cache,
          .chooses_algorithms = true};
}

}  // namespace tidepool
