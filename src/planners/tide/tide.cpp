#include "planners/tide/tide.h"

#include <algorithm>

#include "planners/autoswap/autoswap.h"
#include "planners/registry.h"
#include "planners/tide/tide_search.h"
#include "planners/toolkit/decision_reasons.h"
#include "planners/toolkit/wear.h"

namespace tidepool {
namespace {

class Tide : public Planner {
 public:
  explicit Tide(int threads) : threads_(threads) {}

  [[nodiscard]] std::string_view name() const override { return "tide"; }

  Result<PlannerOutput> plan(PlannerContext& context) override {
    if (!context.options().may.swap) return make_autoswap()->plan(context);
    auto first = begin(context);
    if (!first) return fail(first.error());
    if (context.gives_up()) {
      return PlannerOutput{std::move(*first), {"best from autoswap; stopped before the search"}};
    }
    const bool file = leaves_to_file(context.machine());
    const Allowance whole = context.allowance();
    TideSearch search(context, std::move(*first),
                      {.threads = threads_, .name = "tide", .origin = "autoswap"});
    for (const Lowered& known : context.options().known) {
      if (known.strategy.sub_batch == context.workload().sub_batch()) {
        search.add_plan(known, "a known plan");
      }
    }
    if (file) search.extend(whole.part(1 - kToWriteLess));
    search.run();
    if (file) search.write_less(whole.slice(kToWriteLess));
    add_reasons(context.lowering().program(), context.lowering().index(), context.machine(),
                search.best().strategy);
    return PlannerOutput{std::move(search.best()), {search.note()}};
  }

 private:
  /// AutoSwap's plan. Where that takes more than most of the time: what it has by then, or the
  /// streaming schedule.
  static Result<Lowered> begin(PlannerContext& context) {
    constexpr Nanos kAtLeast = std::chrono::milliseconds(300);
    PlannerOptions options = context.options();
    options.time_limit = std::max(options.time_limit / 5 * 4, kAtLeast);
    auto inner =
        PlannerContext::make(context.workload(), context.machine(), context.budget(), options);
    if (!inner) return fail(inner.error());
    auto first = make_autoswap()->plan(*inner);
    if (!first) return fail(first.error());
    if (auto* lowered = std::get_if<Lowered>(&first->choice)) return std::move(*lowered);
    LowerOptions lowering;
    lowering.stop = context.stopped_or_late();
    if (context.stopped()) lowering.attempts = 0;
    return context.lowering().lower(std::get<Strategy>(first->choice), context.budget(), lowering);
  }

  int threads_;
};

}  // namespace

std::unique_ptr<Planner> make_tide(int threads) { return std::make_unique<Tide>(threads); }

PlannerInfo tide_planner() {
  return {.name = "tide",
          .description = "swaps by search, from what autoswap finds",
          .make = [] { return make_tide(); },
          .starts_from = "autoswap",
          .rivals = Rivals::swapping,
          .seeds_searches = false};
}

}  // namespace tidepool
