#include "planners/planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "check/check.h"
#include "lower/memory_sizes.h"
#include "lower/time_plan.h"
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
/// needs no more; or else the fastest of these: that with what the host cannot hold in the file;
/// those made as if the way to the host were slower, by the part of it that goes on to the file and
/// several times, so that less goes there and more is made again; and the one that is found inside
/// the host budget. The first has half of the time, the others share what is left.
class ThreeTiers {
 public:
  ThreeTiers(Planner& planner, Workload& workload, const Machine& machine, const Budget& budget,
             const PlannerOptions& options)
      : planner_(planner),
        workload_(workload),
        machine_(machine),
        budget_(budget),
        any_host_(budget),
        options_(options) {
    any_host_.host = 0;
  }

  Result<Planned> plan() {
    auto upper = plan_within(planner_, workload_, machine_, any_host_, any_host_, part_of_rest(2));
    if (!upper || upper->lowered.plan.host_bytes() <= budget_.host) return upper;
    const Nanos least = upper->lowered.iteration_time;
    const std::array told{with_file_on_the_way(upper->lowered.plan.host_bytes()),
                          with_slower_host(8), with_slower_host(64)};
    Result<Planned> best = over_file(std::move(upper));
    if (!best && best.error().code != ErrorCode::infeasible) return best;
    const auto enough = [&] {
      return options_.stop.requested() || (best && best->lowered.iteration_time <= least);
    };
    int left = static_cast<int>(told.size()) + 1;
    for (const Machine& machine : told) {
      if (enough()) return best;
      auto other =
          plan_within(planner_, workload_, machine, any_host_, any_host_, part_of_rest(left--));
      if (other) take_faster(over_file(std::move(other)), best);
    }
    if (enough()) return best;
    take_faster(plan_within(planner_, workload_, machine_, budget_, budget_, rest()), best);
    return best;
  }

 private:
  [[nodiscard]] PlannerOptions rest() const { return in_the_rest(options_, start_); }

  static void take_faster(Result<Planned> other, Result<Planned>& best) {
    if (!other) return;
    if (best && best->lowered.iteration_time <= other->lowered.iteration_time) return;
    best = std::move(other);
  }

  [[nodiscard]] PlannerOptions part_of_rest(int parts) const {
    PlannerOptions part = rest();
    if (part.time_limit != Nanos::max()) {
      part.time_limit = std::max(part.time_limit / parts, Nanos{1});
    }
    return part;
  }

  [[nodiscard]] Machine with_slower_host(double factor) const {
    Machine m = machine_;
    m.to_host().bytes_per_second /= factor;
    m.to_device().bytes_per_second /= factor;
    return m;
  }

  /// Where a plan needs `needed` bytes of the host.
  [[nodiscard]] Machine with_file_on_the_way(Bytes needed) const {
    const double share =
        1 - static_cast<double>(budget_.host) / static_cast<double>(std::max<Bytes>(needed, 1));
    const SpaceId host = machine_.host();
    const SpaceId file = machine_.behind_host();
    const auto slow = [share](LinkSpeed& near, const LinkSpeed& far) {
      near.bytes_per_second = 1 / (1 / near.bytes_per_second + share / far.bytes_per_second);
      near.latency += far.latency;
    };
    Machine m = machine_;
    slow(m.to_host(), machine_.find_link(host, file)->speed);
    slow(m.to_device(), machine_.find_link(file, host)->speed);
    return m;
  }

  /// Inside all budgets, timed and proved.
  Result<Planned> over_file(Result<Planned> planned) {
    const auto program = workload_.program(planned->sub_batch());
    if (!program) return fail(program.error());
    const auto begun_at = Clock::now();
    Lowered& lowered = planned->lowered;
    TimedPlan timed = time_plan(**program, lowered.plan, machine_);
    lowered.iteration_time = timed.iteration_time;
    lowered.unplaced_time = std::min(lowered.unplaced_time, timed.iteration_time);
    lowered.steps = std::move(timed.steps);
    if (lowered.plan.host_bytes() > budget_.host) {
      auto whole = with_host_over_file(**program, lowered, machine_, budget_, rest());
      if (!whole) return fail(whole.error());
      lowered = std::move(*whole);
      lowered.plan.planner = planner_.name();
    }
    const auto planned_at = Clock::now();
    if (auto proof = check(**program, lowered.plan, check_limits(machine_, budget_)); !proof) {
      return fail(proof.error());
    }
    planned->plan_time += planned_at - begun_at;
    planned->check_time += Clock::now() - planned_at;
    return planned;
  }

  using Clock = std::chrono::steady_clock;
  Planner& planner_;
  Workload& workload_;
  const Machine& machine_;
  const Budget& budget_;
  Budget any_host_;
  const PlannerOptions& options_;
  Clock::time_point start_ = Clock::now();
};

}  // namespace

Result<Planned> make_plan(Planner& planner, Workload& workload, const Machine& machine,
                          const Budget& wanted, const PlannerOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  const auto within = within_memory(machine, wanted);
  if (!within) return fail(within.error());
  if (within->host > 0 && machine.behind_host() != kNone) {
    return ThreeTiers(planner, workload, machine, *within, options).plan();
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
