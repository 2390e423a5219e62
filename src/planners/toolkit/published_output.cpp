#include "planners/toolkit/published_output.h"

#include <fmt/format.h>

namespace tidepool {

PlannerOutput cannot_train(Strategy strategy, std::string note, std::string_view system) {
  note += fmt::format(
      ", which does not fit: {} cannot train in this budget; the streaming schedule is used",
      system);
  return {std::move(strategy), {std::move(note)}};
}

PlannerOutput published_output(PlannerContext& context, Strategy strategy, std::string note,
                               std::string_view system) {
  Trial trial = place(context.lowering(), strategy, context.budget(), {});
  if (trial.lowered) return {std::move(*trial.lowered), {std::move(note)}};
  return cannot_train(std::move(strategy), std::move(note), system);
}

}  // namespace tidepool
