#include "planners/toolkit/others_plan.h"

#include <utility>

#include "planners/autoswap/autoswap.h"

namespace tidepool {

void OthersPlan::make(bool may_stream) {
  auto output = algorithms.empty() ? planner->make()->plan(*context)
                                   : make_autoswap({.algorithms = algorithms})->plan(*context);
  if (!output) {
    error = output.error();
    return;
  }
  if (auto* lowered = std::get_if<Lowered>(&output->choice)) {
    plan = std::move(*lowered);
    return;
  }
  const auto& strategy = std::get<Strategy>(output->choice);
  const auto lowering = context->lowering(strategy.sub_batch);
  if (!lowering) {
    error = lowering.error();
    return;
  }
  LowerOptions lower;
  lower.stop = options.stop;
  lower.packing.give_up = give_up;
  lower.allow_streaming = may_stream && options.may.may_stream();
  auto lowered = (*lowering)->lower(strategy, context->budget(), lower);
  if (lowered) {
    plan = std::move(*lowered);
  } else {
    error = lowered.error();
  }
  if (!plan || plan->strategy.gaps != strategy.gaps) without_plan = strategy;
}

}  // namespace tidepool
