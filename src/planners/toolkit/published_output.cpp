#include "planners/toolkit/published_output.h"

#include <fmt/format.h>

namespace tidepool {

Result<PlannerOutput> cannot_train(PlannerContext& context, std::string why,
                                   std::string_view system) {
  const MayDecide& may = context.options().may;
  LowerOptions nothing_else;
  nothing_else.attempts = 0;
  nothing_else.allow_streaming = may.may_stream();
  auto streamed =
      context.lowering().lower(context.everything_kept(), context.budget(), nothing_else);
  if (!streamed) return fail(streamed.error());
  why +=
      context.stopped()
          ? fmt::format(": stopped before {} had a plan; the streaming schedule is used", system)
          : fmt::format(": {} cannot train in this budget; the streaming schedule is used", system);
  return PlannerOutput{std::move(*streamed), {std::move(why)}};
}

Result<PlannerOutput> published_output(PlannerContext& context, const Strategy& strategy,
                                       std::string note, std::string_view system) {
  Trial trial = place(context.lowering(), strategy, context.budget(), {});
  if (trial.lowered) return PlannerOutput{std::move(*trial.lowered), {std::move(note)}};
  return cannot_train(context, std::move(note) + "; the plan does not fit", system);
}

}  // namespace tidepool
