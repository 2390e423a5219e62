// What commands say of an iteration's rounds.
#pragma once

#include <string>

#include "base/json_fwd.h"
#include "base/time.h"
#include "planning/rounds_of_plan.h"

namespace tidepool::cli {

void add_to(Json& out, const RoundsOfPlan& rounds);
/// Empty where the batch runs at once and nobody asked for a choice.
std::string text_of(const RoundsOfPlan& rounds);
/// Empty where rounds leave training as it is.
std::string warning_of(const RoundsOfPlan& rounds);

/// What algorithms that a planner may choose (--algorithms auto) would save of the time without a
/// budget; empty where that is less than 1 %, or nothing.
std::string worth_of_choosing(Nanos unlimited, Nanos fastest);

}  // namespace tidepool::cli
