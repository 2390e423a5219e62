#include "planners/auto/auto.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/parallel.h"
#include "ir/load_profile.h"
#include "planners/registry.h"
#include "planners/tide/tide_search.h"

namespace tidepool {
namespace {

using Clock = Allowance::Clock;

/// Another planner's plan for the same question.
struct Start {
  const PlannerInfo* planner = nullptr;
  PlannerOptions options;
  std::optional<PlannerContext> context;
  std::optional<Lowered> plan;
  Error error;
};

/// Larger programs leave the published planners no time: not all of them look at the clock.
constexpr double kOpsASecond = 10'000;

/// Searches of their own would leave no time, and chance makes no good start.
bool is_a_start(const PlannerInfo& info) {
  constexpr std::array kOthers{"auto", "tide", "random"};
  return std::find(kOthers.begin(), kOthers.end(), info.name) == kOthers.end();
}

/// AutoSwap's comes first: it plans for every budget. Of the others, those that take longest last.
int turn_of(const PlannerInfo& info) {
  constexpr std::array kLast{"capuchin", "tflms"};
  if (info.name == "autoswap") return -2;
  if (info.has_a_swarm) return -1;  // which needs its time, beside the quick ones
  const auto* const last = std::find(kLast.begin(), kLast.end(), info.name);
  return last == kLast.end() ? 0 : 1 + static_cast<int>(last - kLast.begin());
}

class Auto : public Planner {
 public:
  explicit Auto(int threads) : threads_(threads) {}

  [[nodiscard]] std::string_view name() const override { return "auto"; }

  Result<PlannerOutput> plan(PlannerContext& context) override {
    auto starts = plans_of_others(context);
    if (!starts) return fail(starts.error());
    Start* best = nullptr;
    for (Start& start : *starts) {
      if (!start.plan) continue;
      const bool faster =
          best == nullptr || start.plan->iteration_time < best->plan->iteration_time;
      if (faster) best = &start;
    }
    if (best == nullptr) return fail(starts->front().error);
    const MayDecide& may = context.options().may;
    if (!may.swap) return PlannerOutput{std::move(*best->plan), {"best of all other planners"}};
    TideSearch search(context, *best->plan,
                      {.threads = threads_,
                       .recompute = may.recompute,
                       .name = "auto",
                       .origin = best->planner->name});
    for (const Start& start : *starts) {
      if (start.plan && &start != best) search.add_seed(start.plan->strategy);
    }
    search.run();
    return PlannerOutput{std::move(search.best()), {search.note()}};
  }

 private:
  /// AutoSwap may take most of the time. The streaming schedule stands in for what it has no
  /// addresses for.
  Result<std::vector<Start>> plans_of_others(PlannerContext& context) const {
    constexpr Nanos kAtLeast = std::chrono::milliseconds(300);
    const PlannerOptions& wanted = context.options();
    const bool time_for_others = wanted.evaluation_limit > 0 ||
                                 static_cast<double>(context.lowering().program().ops.size()) <=
                                     kOpsASecond * to_seconds(wanted.time_limit);
    std::vector<Start> starts;
    for (const PlannerInfo& info : planner_list()) {
      if (!is_a_start(info) || (info.name == "none" && !everything_fits(context))) continue;
      const bool first = info.name == "autoswap";
      if (!first && !time_for_others) continue;
      Start& start = starts.emplace_back();
      start.planner = &info;
      start.options = wanted;
      start.options.progress = nullptr;
      start.options.time_limit =
          first ? std::max(wanted.time_limit * 4 / 5, kAtLeast) : wanted.time_limit / 2;
      start.options.may.algorithms = false;
      start.options.may.sub_batch = false;
    }
    std::stable_sort(starts.begin(), starts.end(), [](const Start& a, const Start& b) {
      return turn_of(*a.planner) < turn_of(*b.planner);
    });
    const Clock::time_point begun = Clock::now();
    for (Start& start : starts) {
      const bool late = !context.allowance().repeats() && Clock::now() - begun > kAtLeast &&
                        &start != &starts.front();
      if (late) break;
      if (wanted.evaluation_limit == 0) {
        start.options.stop = [stop = wanted.stop, until = begun + start.options.time_limit] {
          return stop.requested() || Clock::now() >= until;
        };
      }
      auto made = PlannerContext::make(context.workload(), context.machine(), context.budget(),
                                       start.options);
      if (!made) return fail(made.error());
      start.context.emplace(std::move(*made));
    }
    const int threads =
        threads_ > 0 ? threads_ : static_cast<int>(std::thread::hardware_concurrency());
    ThreadPool pool(static_cast<std::size_t>(std::max(threads, 1)));
    pool.each(starts.size(), [&](std::size_t i) { plan_one(starts[i], i == 0); });
    return starts;
  }

  /// Planner 'none' packs for longer than it is told where it has not got a chance.
  static bool everything_fits(PlannerContext& context) {
    const Lowering& own = context.lowering();
    const Bytes alignment = context.machine().alignment();
    const auto algorithms = context.algorithms(own.program());
    return load_profile(own.program(), own.index(), alignment, algorithms).peak <=
           align_up(context.budget().device, alignment);
  }

  static void plan_one(Start& start, bool streaming) {
    if (!start.context) return;
    if (start.options.stop.requested() && !streaming) return;
    auto output = start.planner->make()->plan(*start.context);
    if (!output) {
      start.error = output.error();
      return;
    }
    if (auto* lowered = std::get_if<Lowered>(&output->choice)) {
      start.plan = std::move(*lowered);
      return;
    }
    LowerOptions options;
    options.stop = start.options.stop;
    options.allow_streaming = streaming && start.options.may.swap;
    auto lowered = start.context->lowering().lower(std::get<Strategy>(output->choice),
                                                   start.context->budget(), options);
    if (lowered) {
      start.plan = std::move(*lowered);
    } else {
      start.error = lowered.error();
    }
  }

  int threads_;
};

}  // namespace

std::unique_ptr<Planner> make_auto(int threads) { return std::make_unique<Auto>(threads); }

PlannerInfo auto_planner() {
  return {.name = "auto",
          .description = "keeps, swaps, drops and recomputes by search, from what the others find",
          .make = [] { return make_auto(); },
          .starts_from = "autoswap",
          .time_limit = std::chrono::seconds(2)};
}

}  // namespace tidepool
