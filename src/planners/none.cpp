#include "planners/none.h"

#include <fmt/format.h>

#include <chrono>
#include <limits>
#include <optional>

#include "base/quantity.h"
#include "ir/load_profile.h"
#include "planners/registry.h"

namespace tidepool {
namespace {

class None : public Planner {
 public:
  [[nodiscard]] std::string_view name() const override { return "none"; }

  Result<PlannerOutput> plan(PlannerContext& context) override {
    Lowering& lowering = context.lowering();
    const Strategy strategy = context.everything_kept();
    const Budget& budget = context.budget();
    if (auto fits = lowering.lower(strategy, budget, plain()))
      return PlannerOutput{std::move(*fits), {}};
    const auto needed = needed_bytes(lowering, strategy);
    if (!needed) return fail(needed.error());
    if (*needed <= budget.device) return fail(host_is_too_small(lowering, strategy, budget));
    if (auto fits = search(lowering, strategy, context)) return PlannerOutput{std::move(*fits), {}};
    return fail(Error{
        ErrorCode::infeasible,
        fmt::format("budget {} B ({}) cannot be met without swapping: planner 'none' "
                    "keeps every tensor and needs {} B ({}); try `planner` autoswap",
                    budget.device, format_bytes(budget.device), *needed, format_bytes_up(*needed)),
        *needed});
  }

 private:
  static LowerOptions plain() {
    LowerOptions options;
    options.allow_streaming = false;
    return options;
  }

  /// What packing takes without a budget, squeezed as long as a tighter packing is found. Fails
  /// where it cannot be lowered at all.
  static Result<Bytes> needed_bytes(Lowering& lowering, const Strategy& strategy) {
    auto lowered = lowering.lower(strategy, {std::numeric_limits<Bytes>::max() / 4, 0}, plain());
    if (!lowered) return fail(lowered.error());
    Bytes needed = 0;
    while (lowered) {
      needed = lowered->plan.device_bytes();
      lowered = lowering.lower(strategy, {needed - 1, 0}, plain());
    }
    return needed;
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

  /// Addresses inside the budget by searching for them, for as long as the planner may; with an
  /// evaluation limit for some rounds. A load above the budget has none.
  static std::optional<Lowered> search(Lowering& lowering, const Strategy& strategy,
                                       const PlannerContext& context) {
    const Bytes alignment = lowering.machine().alignment();
    const LoadProfile load =
        load_profile(lowering.program(), lowering.index(), alignment, strategy.algorithms);
    if (load.peak > align_up(context.budget().device, alignment)) return std::nullopt;
    LowerOptions options = plain();
    constexpr int kRounds = 4;
    const Allowance allowance = context.allowance();
    options.packing = {std::chrono::duration_cast<Nanos>(allowance.time_left()),
                       allowance.repeats() ? kRounds : 0, context.options().seed,
                       context.options().stop};
    options.attempts = 1;
    if (!options.packing.wanted()) return std::nullopt;
    return tidepool::place(lowering, strategy, context.budget(), options).lowered;
  }
};

}  // namespace

std::unique_ptr<Planner> make_none() { return std::make_unique<None>(); }

PlannerInfo none_planner() {
  return {.name = "none",
          .description = "keeps every tensor on the device",
          .make = make_none,
          .meets_every_budget = false,
          .keeps_everything = true};
}

}  // namespace tidepool
