#include "planners/toolkit/published_output.h"

#include <fmt/format.h>

#include "base/counted.h"

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

Result<PlannerOutput> in_first_size(
    PlannerContext& context, std::span<const std::int64_t> sizes, std::string_view system,
    const std::function<Result<std::optional<PlannerOutput>>(Lowering&)>& train_in) {
  for (const std::int64_t size : sizes) {
    if (context.stopped()) return fail(ErrorCode::interrupted, "interrupted while planning");
    const auto lowering = context.lowering(size);
    if (!lowering) return fail(lowering.error());
    auto output = train_in(**lowering);
    if (!output) return fail(output.error());
    if (!*output) continue;
    (*output)->notes.push_back(fmt::format(
        "{} of {}", counted((*lowering)->program().rounds(), "round"), counted(size, "sample")));
    return std::move(**output);
  }
  return cannot_train(context,
                      context.options().may.sub_batch
                          ? "no size of rounds that moDNN's rule has fits"
                          : "the batch does not fit",
                      system);
}

}  // namespace tidepool
