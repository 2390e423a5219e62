// What a published planner returns.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "planners/planner.h"

namespace tidepool {

/// The strategy with addresses inside the budget, or `cannot_train`. It is of the workload's own
/// size.
Result<PlannerOutput> published_output(PlannerContext& context, const Strategy& strategy,
                                       std::string note, std::string_view system);

/// Where the published system cannot train, or was stopped before it had a plan: the streaming
/// schedule, and the note says so. Fails where that does not fit either, or is not allowed. `why`:
/// the beginning of the note's sentence. `system`: its name in notes.
Result<PlannerOutput> cannot_train(PlannerContext& context, std::string why,
                                   std::string_view system);

/// A published system in rounds: of the first of `sizes` in which it can train, with a note of the
/// rounds; else `cannot_train`. `train_in`: nothing where it cannot.
Result<PlannerOutput> in_first_size(
    PlannerContext& context, std::span<const std::int64_t> sizes, std::string_view system,
    const std::function<Result<std::optional<PlannerOutput>>(Lowering&)>& train_in);

}  // namespace tidepool
