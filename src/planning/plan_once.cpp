#include "planning/plan_once.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "check/check.h"
#include "lower/expand.h"
#include "planners/toolkit/wear.h"

namespace tidepool {
namespace {

/// What of a choice was not the planner's to decide; empty when all of it was. `streams`: it is the
/// streaming schedule.
std::string beyond(const MayDecide& may, const Strategy& strategy, bool streams,
                   PlannerContext& context, const Lowering& lowering) {
  if (!may.sub_batch && strategy.sub_batch != context.workload().sub_batch()) {
    return fmt::format("sub-batch {}", strategy.sub_batch);
  }
  const bool last_resort = streams && may.may_stream();
  if (!may.algorithms && !last_resort &&
      strategy.algorithms != context.algorithms(lowering.program())) {
    return "algorithms";
  }
  const auto allowed = [&](Decision decision) {
    if (decision == Decision::keep) return true;
    return decision == Decision::recompute ? may.recompute : may.swap;
  };
  const auto gaps = lowering.index().gaps();
  for (std::size_t g = 0; g < gaps.size() && g < strategy.gaps.size(); ++g) {
    if (gaps[g].kind != GapKind::device || allowed(strategy.gaps[g])) continue;
    const Tensor& tensor = lowering.program().tensors[static_cast<std::size_t>(gaps[g].tensor)];
    return fmt::format("'{}' for tensor '{}'", to_string(strategy.gaps[g]), tensor.name);
  }
  return {};
}

/// The plan of what the planner chose, under its name.
Result<Lowered> realise(PlannerOutput& output, std::string_view name, PlannerContext& context) {
  Strategy* strategy = std::get_if<Strategy>(&output.choice);
  Strategy& chosen = strategy != nullptr ? *strategy : std::get<Lowered>(output.choice).strategy;
  const auto lowering = context.lowering(chosen.sub_batch);
  if (!lowering) return fail(lowering.error());
  const MayDecide& may = context.options().may;
  const bool streams = strategy == nullptr && std::get<Lowered>(output.choice).streaming;
  if (const std::string what = beyond(may, chosen, streams, context, **lowering); !what.empty()) {
    return fail(ErrorCode::runtime,
                fmt::format("planner '{}' decided {}, which it may not", name, what));
  }
  chosen.planner = name;
  if (strategy == nullptr) {
    auto& lowered = std::get<Lowered>(output.choice);
    lowered.plan.planner = name;
    return std::move(lowered);
  }
  LowerOptions options;
  options.allow_streaming = may.may_stream();
  auto lowered = (*lowering)->lower(chosen, context.budget(), options);
  if (lowered) lowered->strategy.planner = name;
  return lowered;
}

/// Of the known plans the fastest that is faster than what was found, where that is all that
/// counts.
const Lowered* faster_known(const Lowered& found, const PlannerOptions& options,
                            const Machine& machine) {
  if (leaves_to_file(machine)) return nullptr;
  const Lowered* fastest = nullptr;
  Nanos least = found.iteration_time;
  for (const Lowered& known : options.known) {
    if (known.iteration_time >= least) continue;
    least = known.iteration_time;
    fastest = &known;
  }
  return fastest;
}

}  // namespace

Result<Planned> plan_once(Planner& planner, Workload& workload, const Machine& machine,
                          const Budget& budget, const PlannerOptions& options) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  auto context = PlannerContext::make(workload, machine, budget, options);
  if (!context) return fail(context.error());
  if (std::string why = why_unplannable(context->lowering().program()); !why.empty()) {
    return fail(ErrorCode::bad_input, std::move(why));
  }
  auto output = planner.plan(*context);
  if (!output) return fail(output.error());
  auto lowered = realise(*output, planner.name(), *context);
  if (!lowered) return fail(lowered.error());
  if (const Lowered* known = faster_known(*lowered, options, machine)) {
    *lowered = *known;
    output->notes = {"a plan that was known: nothing faster was found"};
  }
  if (budget.host > 0 && lowered->plan.host_bytes() > budget.host) {
    return fail(ErrorCode::infeasible, "needs more of the host");
  }
  Planned planned;
  planned.lowered = std::move(*lowered);
  planned.notes = std::move(output->notes);
  planned.learning = std::move(output->learning);
  const auto lowered_at = Clock::now();
  const Lowering& used = **context->lowering(planned.sub_batch());
  if (auto proof = check(used.program(), planned.lowered.plan, check_limits(machine, budget));
      !proof) {
    return fail(proof.error());
  }
  planned.plan_time = lowered_at - start - context->waited();
  planned.check_time = Clock::now() - lowered_at;
  return planned;
}

}  // namespace tidepool
