#include "planners/planner.h"

#include <fmt/format.h>

#include <chrono>

#include "check/check.h"
#include "lower/memory_sizes.h"
#include "planners/planner_file_tier.h"

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

/// The plan that is found when the planner is told of `told`, proved to keep to `budget`.
Result<Planned> plan_within(Planner& planner, Workload& workload, const Machine& machine,
                            const Budget& told, const Budget& budget,
                            const PlannerOptions& options) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  auto context = PlannerContext::make(workload, machine, told, options);
  if (!context) return fail(context.error());
  auto output = planner.plan(*context);
  if (!output) return fail(output.error());
  auto lowered = realise(*output, planner.name(), *context);
  if (!lowered) return fail(lowered.error());
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

PlannerOptions in_the_rest(const PlannerOptions& options,
                           std::chrono::steady_clock::time_point start) {
  PlannerOptions rest = options;
  if (options.time_limit != Nanos::max()) {
    const Nanos spent = std::chrono::steady_clock::now() - start;
    rest.time_limit = std::max(options.time_limit - spent, Nanos{1});
  }
  return rest;
}

/// In a host budget with a file behind the host: the plan that is found in any host budget, if that
/// needs no more; or else that with what the host cannot hold in the file, or the one that is found
/// inside the host budget, whichever is faster.
Result<Planned> plan_three_tiers(Planner& planner, Workload& workload, const Machine& machine,
                                 const Budget& budget, const PlannerOptions& options) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  Budget any_host = budget;
  any_host.host = 0;
  auto upper = plan_within(planner, workload, machine, any_host, any_host, options);
  if (!upper || upper->lowered.plan.host_bytes() <= budget.host) return upper;
  const auto program = workload.program(upper->sub_batch());
  if (!program) return fail(program.error());
  const auto joined_at = Clock::now();
  auto whole =
      with_host_over_file(**program, upper->lowered, machine, budget, in_the_rest(options, start));
  Result<Planned> tiered = fail(ErrorCode::infeasible, "");
  if (whole) {
    whole->plan.planner = planner.name();
    const auto planned_at = Clock::now();
    const auto proof = check(**program, whole->plan, check_limits(machine, budget));
    if (!proof) return fail(proof.error());
    const bool lost_nothing = whole->iteration_time <= upper->lowered.iteration_time;
    tiered = std::move(*upper);
    tiered->lowered = std::move(*whole);
    tiered->plan_time += planned_at - joined_at;
    tiered->check_time += Clock::now() - planned_at;
    if (lost_nothing || options.stop.requested()) return tiered;
  } else if (whole.error().code == ErrorCode::infeasible) {
    tiered = fail(whole.error());
  } else {
    return fail(whole.error());
  }
  auto without =
      plan_within(planner, workload, machine, budget, budget, in_the_rest(options, start));
  const bool faster =
      without && (!tiered || without->lowered.iteration_time < tiered->lowered.iteration_time);
  return faster ? std::move(without) : std::move(tiered);
}

}  // namespace

Result<Planned> make_plan(Planner& planner, Workload& workload, const Machine& machine,
                          const Budget& wanted, const PlannerOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  const auto within = within_memory(machine, wanted);
  if (!within) return fail(within.error());
  if (within->host > 0 && machine.behind_host() != kNone) {
    return plan_three_tiers(planner, workload, machine, *within, options);
  }
  auto planned = plan_within(planner, workload, machine, *within, *within, options);
  const bool infeasible = !planned && planned.error().code == ErrorCode::infeasible;
  if (!infeasible || within->host == 0 || options.stop.requested()) return planned;
  // Searches steer by the device's bytes alone. Where the first plans they come to need too much of
  // the host, the one they would end at may not.
  Budget any_host = *within;
  any_host.host = 0;
  auto other =
      plan_within(planner, workload, machine, any_host, *within, in_the_rest(options, start));
  return other ? std::move(other) : std::move(planned);
}

}  // namespace tidepool
