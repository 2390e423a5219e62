#include "planning/make_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "check/check.h"
#include "cost/turns_on_buses.h"
#include "lower/memory_sizes.h"
#include "lower/time_plan.h"
#include "planners/toolkit/wear.h"
#include "planning/host_over_file.h"
#include "schedule/plan_totals.h"

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

/// The plan that the planner finds, proved to keep to the budget.
Result<Planned> plan_within(Planner& planner, Workload& workload, const Machine& machine,
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

/// As much as a plan can have on the host.
Bytes bytes_of_all(const Program& program, const Machine& machine) {
  Bytes bytes = 0;
  for (const Tensor& t : program.tensors) bytes += align_up(t.bytes, machine.alignment());
  return bytes;
}

/// In a host budget: the plan that is found in any host budget, if that needs no more; or else the
/// fastest of these, each inside the host budget or, where there is a file behind the host, with
/// what the host cannot hold in it. That plan, and the one of a longer search for it; those made as
/// if the way to the host were slower, by the part of it that goes on to the file and several
/// times, so that less goes there and more is made again; and the one whose search keeps to the
/// host budget.
class LimitedHost {
 public:
  LimitedHost(Planner& planner, Workload& workload, const Machine& machine, const Budget& budget,
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
    // A short search tells whether the host is short of memory.
    constexpr double kFirst = 0.125;
    const PlannerOptions share = part_of_rest(kFirst);
    auto first = plan_on(machine_, any_host_, share);
    // Of its time, where it did not end by itself.
    constexpr double kUsed = 0.8;
    const bool whole = !timed() || Clock::now() - start_ < part_of(share, kUsed).time_limit;
    if (!first) return whole ? std::move(first) : plan_on(machine_, any_host_, rest());
    auto planned =
        fits(*first) ? in_much(std::move(*first), whole) : in_little(std::move(*first), whole);
    if (planned) {
      planned->plan_time = Clock::now() - start_ - waited_ - planned->check_time;
    } else if (planned.error().code == ErrorCode::infeasible && least_ < kNoSpaceLimit) {
      // What a search by the clock found once it may miss by a little the next time.
      planned.error().smallest_feasible = whole ? least_ : least_ + least_ / 10;
      planned.error().of_host = true;
    }
    return planned;
  }

 private:
  /// `first`: fits. `whole`: its search ended by itself.
  Result<Planned> in_much(Planned first, bool whole) {
    Result<Planned> best = std::move(first);
    if (whole) return best;
    auto longer = plan_on(machine_, any_host_, rest());
    if (longer && fits(*longer)) take_better(std::move(longer), best);
    return best;
  }

  /// `any`: what is found in any host budget.
  Result<Planned> in_little(Planned any, bool whole) {
    // Where that search ended by itself, nothing is faster.
    const Nanos least = whole ? any.lowered.iteration_time : Nanos{0};
    const Machine on_the_way =
        has_file() ? with_file_on_the_way(any.lowered.plan.host_bytes()) : machine_;
    Result<Planned> best = in_budget(std::move(any), part_of_rest(0.1));
    const auto enough = [&] {
      return options_.stop.requested() || (!best && best.error().code != ErrorCode::infeasible) ||
             (best && best->lowered.iteration_time <= least &&
              written_to_files(best->lowered.plan) == 0);
    };
    int left = has_file() ? 2 : 3;
    // A longer search may need less.
    if (!enough() && !whole && try_on(machine_, 1 / (left + 2.5), best) && best) {
      return in_much(std::move(*best), false);
    }
    if (!enough() && has_file()) try_on(on_the_way, 0.4, best);
    // As much slower as it takes, and no more: what fits with room to spare could swap more.
    double low = 1, high = 0;
    for (; left > 0 && !enough(); --left) {
      constexpr double kStep = 8;
      const double factor = high == 0 ? low * kStep : std::sqrt(low * high);
      (try_on(with_slower_host(factor), 1 / (left + 0.5), best) ? high : low) = factor;
    }
    if (enough()) return best;
    auto within = plan_on(machine_, budget_, rest());
    if (!best && !has_file()) return within;  // an error that says more
    take_better(std::move(within), best);
    return best;
  }

  /// Plans as if on `machine`, in a part of the time that is left, and keeps what is faster on the
  /// machine as it is. Whether its plan fits as it is.
  bool try_on(const Machine& machine, double part, Result<Planned>& best) {
    const auto begun_at = Clock::now();
    const PlannerOptions share = part_of_rest(part);
    // A third is for what goes on to the file.
    auto planned = plan_on(machine, any_host_, part_of(share, has_file() ? 2.0 / 3 : 1));
    if (!planned) return false;
    const bool fitted = fits(*planned);
    take_better(in_budget(std::move(*planned), in_the_rest(share, begun_at)), best);
    return fitted;
  }

  Result<Planned> plan_on(const Machine& machine, const Budget& budget,
                          const PlannerOptions& options) {
    const auto begun_at = Clock::now();
    auto planned = plan_within(planner_, workload_, machine, budget, options);
    if (planned) {
      waited_ += Clock::now() - begun_at - planned->plan_time - planned->check_time;
      least_ = std::min(least_, planned->lowered.plan.host_bytes());
    }
    return planned;
  }

  [[nodiscard]] bool has_file() const { return machine_.behind_host() != kNone; }
  [[nodiscard]] bool fits(const Planned& planned) const {
    return planned.lowered.plan.host_bytes() <= budget_.host;
  }
  /// A limit of evaluations makes the result one of the seed alone: no clock is asked.
  [[nodiscard]] bool timed() const {
    return options_.evaluation_limit == 0 && options_.time_limit != Nanos::max();
  }
  [[nodiscard]] PlannerOptions rest() const { return in_the_rest(options_, start_); }

  /// The faster one; of those as fast as the fastest, the one that writes less to files.
  void take_better(Result<Planned> other, Result<Planned>& best) {
    if (!other) return;
    fastest_ = std::min(fastest_, other->lowered.iteration_time);
    if (!best || is_better(other->lowered, best->lowered)) best = std::move(other);
  }

  [[nodiscard]] bool is_better(const Lowered& other, const Lowered& best) const {
    const Nanos as_fast = as_fast_as(std::min(fastest_, best.iteration_time));
    if (best.iteration_time > as_fast) return other.iteration_time < best.iteration_time;
    if (other.iteration_time > as_fast) return false;
    return std::pair(written_to_files(other.plan), other.iteration_time) <
           std::pair(written_to_files(best.plan), best.iteration_time);
  }

  [[nodiscard]] PlannerOptions part_of_rest(double part) const { return part_of(rest(), part); }

  static PlannerOptions part_of(PlannerOptions options, double part) {
    if (options.time_limit == Nanos::max()) return options;
    const double nanos = part * static_cast<double>(options.time_limit.count());
    options.time_limit = std::max(Nanos{std::llround(nanos)}, Nanos{1});
    return options;
  }

  [[nodiscard]] Machine with_slower_host(double factor) const {
    Machine m = machine_;
    for (Link& link : m.links) {
      if (link.from >= m.devices() && link.to >= m.devices()) continue;
      if (link.from != m.host() && link.to != m.host()) continue;
      link.speed.bytes_per_second /= factor;
    }
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

  /// Inside all budgets, timed on the machine as it is, and proved.
  Result<Planned> in_budget(Planned planned, const PlannerOptions& options) {
    if (!has_file() && !fits(planned)) return fail(ErrorCode::infeasible, "needs more of the host");
    const auto program = workload_.program(planned.sub_batch());
    if (!program) return fail(program.error());
    Lowered& lowered = planned.lowered;
    TimedPlan timed = time_plan(**program, lowered.plan, machine_);
    lowered.iteration_time = timed.iteration_time;
    lowered.unplaced_time = std::min(lowered.unplaced_time, timed.iteration_time);
    lowered.steps = std::move(timed.steps);
    if (!fits(planned)) {
      auto whole = with_host_over_file(**program, lowered, machine_, budget_, options);
      if (!whole && whole.error().of_host && whole.error().smallest_feasible) {
        least_ = std::min(least_, *whole.error().smallest_feasible);
      }
      if (!whole) return fail(whole.error());
      lowered = std::move(*whole);
      lowered.plan.planner = planner_.name();
    }
    const auto planned_at = Clock::now();
    if (auto proof = check(**program, lowered.plan, check_limits(machine_, budget_)); !proof) {
      return fail(proof.error());
    }
    planned.check_time += Clock::now() - planned_at;
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
  Nanos fastest_ = Nanos::max();  ///< of plans in the budget
  Nanos waited_{};                ///< while the workload measured
  Bytes least_ = kNoSpaceLimit;   ///< of the host that would have done
};

}  // namespace

namespace {

/// With the time that a program of this size has.
Result<PlannerOptions> with_time(const PlannerOptions& options, Workload& workload) {
  PlannerOptions mine = options;
  if (!options.usual_time || options.time_limit == Nanos::max()) return mine;
  const auto program = workload.program(workload.sub_batch());
  if (!program) return fail(program.error());
  const auto ops = static_cast<std::int64_t>((*program)->ops.size());
  mine.time_limit = options.time_limit * std::max(ops, kUsualOps) / kUsualOps;
  return mine;
}

/// A search that its time limit has ended says so.
void tell_of_the_limit(const PlannerOptions& options, Planned& planned) {
  constexpr double kAllOfIt = 0.95;
  if (options.evaluation_limit > 0 || options.time_limit == Nanos::max()) return;
  if (to_seconds(planned.plan_time) < kAllOfIt * to_seconds(options.time_limit)) return;
  planned.notes.push_back(
      fmt::format("the search was ended by its limit, {} (`time_limit`): more may find a faster "
                  "plan",
                  format_time(options.time_limit)));
}

}  // namespace

Result<Planned> make_plan(Planner& planner, Workload& workload, const Machine& on,
                          const Budget& wanted, const PlannerOptions& asked) {
  const auto timed = with_time(asked, workload);
  if (!timed) return fail(timed.error());
  const PlannerOptions& options = *timed;
  const Machine machine = with_turns_on_buses(on);
  const auto within = within_memory(machine, wanted);
  if (!within) return fail(within.error());
  if (within->host > 0) {
    const auto program = workload.program(workload.sub_batch());
    if (!program) return fail(program.error());
    if (bytes_of_all(**program, machine) > within->host) {
      auto planned = LimitedHost(planner, workload, machine, *within, options).plan();
      if (planned) tell_of_the_limit(options, *planned);
      return planned;
    }
  }
  auto planned = plan_within(planner, workload, machine, *within, options);
  if (planned) tell_of_the_limit(options, *planned);
  return planned;
}

}  // namespace tidepool
