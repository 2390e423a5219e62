#include "planners/toolkit/largest_rounds.h"

#include <algorithm>
#include <optional>

namespace tidepool {

Result<PlannerOutput> LargestRounds::plan_in_rounds(PlannerContext& context,
                                                    std::int64_t sub_batch) {
  RestrictedWorkload one(context.workload(), {sub_batch});
  if (auto made = context.program(sub_batch); !made) return fail(made.error());
  PlannerOptions options = context.options();
  if (options.time_limit != Nanos::max()) {
    const Nanos spent = Allowance::Clock::now() - context.begun();
    options.time_limit = std::max(options.time_limit - spent, Nanos{1});
  }
  auto inside = PlannerContext::make(one, context.machine(), context.budget(), options);
  if (!inside) return fail(inside.error());
  auto output = inner_->plan(*inside);
  if (!output) return output;
  const auto* strategy = std::get_if<Strategy>(&output->choice);
  if (strategy == nullptr) return output;
  LowerOptions lowering;
  lowering.allow_streaming = options.may.may_stream();
  auto lowered = inside->lowering().lower(*strategy, context.budget(), lowering);
  if (!lowered) return fail(lowered.error());
  output->choice = std::move(*lowered);
  return output;
}

Result<PlannerOutput> LargestRounds::plan(PlannerContext& context) {
  std::optional<PlannerOutput> streaming;
  Error why{ErrorCode::infeasible, "no sub-batch is on offer", std::nullopt};
  for (const std::int64_t sub_batch : context.workload().sub_batches()) {
    auto output = plan_in_rounds(context, sub_batch);
    if (!output) {
      why = output.error();
      if (why.code != ErrorCode::infeasible) break;
      continue;
    }
    const auto& lowered = std::get<Lowered>(output->choice);
    if (!lowered.streaming) return output;
    if (!streaming ||
        lowered.iteration_time < std::get<Lowered>(streaming->choice).iteration_time) {
      streaming = std::move(*output);
    }
    if (context.stopped()) break;
  }
  if (streaming) return std::move(*streaming);
  return fail(std::move(why));
}

}  // namespace tidepool
