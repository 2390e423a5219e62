#include "planners/none.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/least.h"
#include "base/quantity.h"
#include "ir/load_profile.h"
#include "planners/registry.h"

namespace tidepool {
namespace {

class None : public Planner {
 public:
  [[nodiscard]] std::string_view name() const override { return "none"; }

  Result<PlannerOutput> plan(PlannerContext& context) override {
    const Budget& budget = context.budget();
    const std::vector<std::int64_t> sizes = context.options().may.sub_batch
                                                ? context.workload().sub_batches()
                                                : std::vector{context.workload().sub_batch()};
    for (const std::int64_t size : sizes) {
      const auto lowering = context.lowering(size);
      if (!lowering) return fail(lowering.error());
      const Strategy strategy = context.everything_kept(**lowering);
      if (auto fits = within(budget, **lowering, strategy, context)) {
        return PlannerOutput{std::move(*fits), {}};
      }
    }
    // Small rounds need the least: larger ones are asked whether they need less yet.
    Bytes needed = kNoDeviceLimit;
    for (auto size = sizes.rbegin(); size != sizes.rend(); ++size) {
      Lowering& lowering = **context.lowering(*size);
      const Strategy strategy = context.everything_kept(lowering);
      const Bytes less = needed - lowering.machine().alignment();
      if (needed < kNoDeviceLimit && !within({less, 0}, lowering, strategy, context)) continue;
      const auto most = lowering.lower(strategy, no_limit(), plain());
      if (!most) return fail(most.error());
      if (most->plan.device_bytes() <= budget.device) {
        return fail(host_is_too_small(lowering, strategy, budget));
      }
      std::optional<Lowered> least;
      needed =
          smallest(std::min(needed, most->plan.device_bytes()), lowering, strategy, context, least);
      // What fits less fits this, whatever a search for addresses in this one has found.
      if (needed <= budget.device) return PlannerOutput{std::move(*least), {}};
    }
    return fail(Error{
        ErrorCode::infeasible,
        fmt::format("budget {} B ({}) cannot be met without swapping: planner 'none' "
                    "keeps every tensor and needs {} B ({}); try `planner` autoswap",
                    budget.device, format_bytes(budget.device), needed, format_bytes_up(needed)),
        needed});
  }

 private:
  static LowerOptions plain() {
    LowerOptions options;
    options.allow_streaming = false;
    return options;
  }

  /// Addresses inside the budget. Where the packers find none they are searched for, in rounds and
  /// not by the clock, which may only end that: what is found once is found again. Not where the
  /// load is above the budget.
  static std::optional<Lowered> within(const Budget& budget, Lowering& lowering,
                                       const Strategy& strategy, const PlannerContext& context) {
    constexpr int kRounds = 4;
    if (auto fits = lowering.lower(strategy, budget, plain())) return std::move(*fits);
    const Stop late = context.stopped_or_late();
    if (peak(lowering, strategy) > budget.device || late.requested()) return std::nullopt;
    LowerOptions options = plain();
    options.packing.rounds = kRounds;
    options.packing.seed = context.options().seed;
    options.packing.stop = late;
    options.attempts = 1;
    return tidepool::place(lowering, strategy, budget, options).lowered;
  }

  static Bytes peak(Lowering& lowering, const Strategy& strategy) {
    return load_profile(lowering.program(), lowering.index(), lowering.machine().alignment(),
                        strategy.algorithms)
        .peak;
  }

  /// The smallest budget with a plan, up to `most`, which is one; the least known where the time is
  /// up. `plan`: the plan, where it is not that of `most`.
  static Bytes smallest(Bytes most, Lowering& lowering, const Strategy& strategy,
                        const PlannerContext& context, std::optional<Lowered>& plan) {
    const Stop late = context.stopped_or_late();
    const auto enough = [&](Bytes device) {
      if (late.requested()) return false;
      auto fits = within({device, 0}, lowering, strategy, context);
      if (!fits) return false;
      plan = std::move(fits);
      return true;
    };
    const Bytes alignment = lowering.machine().alignment();
    const Bytes bound = smallest_budget(lowering.program(), alignment).bytes;
    return least_enough(bound, most, alignment, enough).value_or(most);
  }

  static Error host_is_too_small(Lowering& lowering, const Strategy& strategy,
                                 const Budget& budget) {
    const auto free = lowering.lower(strategy, {budget.device, 0}, plain());
    if (!free) return free.error();
    const Bytes bytes = free->plan.host_bytes();
    return {ErrorCode::infeasible,
            fmt::format("host budget {} B ({}) is too small: {} B ({}) are enough", budget.host,
                        format_bytes(budget.host), bytes, format_bytes_up(bytes)),
            bytes, true};
  }
};

}  // namespace

std::unique_ptr<Planner> make_none() { return std::make_unique<None>(); }

PlannerInfo none_planner() {
  return {.name = "none",
          .description = "keeps every tensor on the device",
          .make = make_none,
          .meets_every_budget = false,
          .chooses_sub_batch = true,
          .keeps_everything = true};
}

}  // namespace tidepool
