#include "planning/proven_gap.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/json.h"
#include "bound/any_algorithms.h"
#include "ir/load_profile.h"
#include "lower/overhead.h"

namespace tidepool {

bool first_runs_in_order(const Program& program, const Plan& plan) {
  std::vector<char> ran(program.ops.size(), 0);
  OpId last = kNone;
  for (const Instruction& x : plan.steady.instructions) {
    if (x.kind != InstructionKind::op) continue;
    const auto op = static_cast<std::size_t>(x.op);
    if (program.ops[op].place != OpPlace::device || ran[op] != 0) continue;
    ran[op] = 1;
    if (x.op <= last) return false;
    last = x.op;
  }
  return true;
}

bool OverheadBound::covers(const Strategy& strategy) const {
  return strategy.algorithms == algorithms;
}

double OverheadBound::least_overhead() const { return overhead(least_time(), unlimited); }

Result<double> OverheadBound::optimality_gap(Nanos iteration_time) const {
  if (iteration_time < least_time()) {
    return fail(ErrorCode::check_failed,
                fmt::format("internal error: the plan takes {} ns an iteration, and no plan takes "
                            "less than {} ns by the fluid bound; one of them is wrong",
                            iteration_time.count(), least_time().count()));
  }
  if (iteration_time == least_time()) return 0;
  return overhead(iteration_time, unlimited) - least_overhead();
}

namespace {

/// No plan can use more: all tensors, those of the next iteration, and a workspace. The linear
/// program is not told of a budget that is no number of bytes.
Bytes usable(const Program& program, Bytes alignment, Bytes budget) {
  Bytes tensors = 0;
  Bytes workspace = 0;
  for (const Tensor& t : program.tensors) tensors += align_up(t.bytes, alignment);
  for (const Op& op : program.ops) {
    for (const Algorithm& a : op.algorithms) workspace = std::max(workspace, a.workspace);
  }
  return std::min(budget, 2 * tensors + align_up(workspace, alignment));
}

}  // namespace

std::string why_no_bound(const FluidBound& bound, const FluidOptions& options) {
  if (bound.feasible) return {};
  if (!bound.refused.empty()) return bound.refused;
  if (options.stop.requested()) return "interrupted";
  if (!bound.stopped) return "its linear program has no solution";
  return fmt::format("its linear program takes longer than {} (`time_limit`)",
                     format_time(options.time_limit));
}

void add_missing_bound(Json& json, bool stopped, const std::string& refused) {
  json["bound_stopped"] = stopped;
  json["bound_refused"] = refused.empty() ? Json(nullptr) : Json(refused);
}

OverheadBound overhead_bound(const Program& program, const Machine& machine,
                             AlgorithmChoice algorithms, Nanos unlimited, const Budget& budget,
                             const FluidOptions& options, bool recompute,
                             const AlgorithmChoices& choices) {
  OverheadBound bound;
  bound.algorithms = std::move(algorithms);
  bound.compute = compute_time(program, bound.algorithms);
  bound.unlimited = unlimited;
  bound.unlimited_here = unlimited_time(program, machine, bound.algorithms);
  const AccessIndex index(program);
  auto tightest =
      tightest_bound({program, index, machine, bound.algorithms, recompute, budget.host, choices},
                     usable(program, machine.alignment(), budget.device), options);
  bound.fluid = std::move(tightest.fluid);
  bound.by = tightest.by;
  return bound;
}

std::string said_of(BoundBy by, bool stopped) {
  if (by == BoundBy::fluid) return {};
  return fmt::format("{}{}",
                     by == BoundBy::some_ops ? "by a linear program of some ops"
                                             : "by the op that needs most memory",
                     stopped ? "; more time (`time_limit`) may prove more" : "");
}

std::string ProvenGap::text() const {
  if (gap && *gap <= 0 && (!least_time_of_any || none_is_faster)) {
    return choice && !none_is_faster ? "0: no plan with these algorithms and rounds is faster"
                                     : "0: no plan with these rounds is faster";
  }
  if (!gap) return "unknown: " + unknown;
  const std::string any =
      least_time_of_any ? fmt::format(", and none with other algorithms takes less than {:.3f} ms",
                                      to_ms(*least_time_of_any))
                        : "";
  const std::string said = said_of(by, stopped);
  return fmt::format(
      "{}{:.2f} % of the time without a budget: no plan{} has an overhead below {:.2f} % by the "
      "times that plans are made with{}{}",
      said.empty() ? "" : "at most ", 100 * *gap,
      choice ? " with these algorithms and rounds" : " with these rounds", 100 * *least_overhead,
      said.empty() ? "" : fmt::format(" ({})", said), any);
}

void ProvenGap::add_to(Json& json) const {
  json["least_overhead"] = least_overhead ? Json(*least_overhead) : Json(nullptr);
  json["optimality_gap"] = gap ? Json(*gap) : Json(nullptr);
  json["bound"] = gap ? Json(to_string(by)) : Json(nullptr);
  json["least_ms_of_any_algorithms"] =
      least_time_of_any ? Json(to_ms(*least_time_of_any)) : Json(nullptr);
  add_missing_bound(json, stopped, refused);
}

namespace {

/// By the algorithms that the plan has.
Result<void> prove(const Program& program, const Machine& machine, const Lowered& lowered,
                   Nanos unlimited, const Budget& budget, const FluidOptions& options,
                   ProvenGap& result) {
  const OverheadBound bound = overhead_bound(
      program, machine, chosen_algorithms(program, lowered.plan), unlimited, budget, options);
  result.stopped = bound.fluid.stopped;
  result.refused = bound.fluid.refused;
  result.unknown = why_no_bound(bound.fluid, options);
  if (unlimited == Nanos{0}) {
    result.unknown = "an iteration without a budget takes no time that it could be a share of";
    return {};
  }
  if (!bound.fluid.feasible) return {};
  const auto gap = bound.optimality_gap(lowered.iteration_time);
  if (!gap) return fail(gap.error());
  result.least_overhead = bound.least_overhead();
  result.gap = *gap;
  result.by = bound.by;
  return {};
}

}  // namespace

Result<ProvenGap> proven_gap(const Program& program, const Machine& machine, const Lowered& lowered,
                             Nanos unlimited, const Budget& budget, const FluidOptions& options) {
  ProvenGap result;
  if (!first_runs_in_order(program, lowered.plan)) {
    result.unknown = "the plan reorders ops";
    return result;
  }
  const auto begun = std::chrono::steady_clock::now();
  const auto algorithms = chosen_algorithms(program, lowered.plan);
  result.choice = has_a_choice(program);
  if (lowered.iteration_time == unlimited_time(program, machine, algorithms)) {
    // Nothing is left for a linear program to prove.
    result.least_overhead = overhead(lowered.iteration_time, unlimited);
    result.gap = 0;
  } else if (auto proved = prove(program, machine, lowered, unlimited, budget, options, result);
             !proved) {
    return fail(proved.error());
  }
  if (unlimited == Nanos{0}) return result;
  // Others can only be faster where there are some.
  if (!result.choice) return result;
  FluidOptions rest = options;
  if (rest.time_limit != Nanos::max()) rest.time_limit -= std::chrono::steady_clock::now() - begun;
  const Program best_of_each = with_best_algorithms(program);
  const OverheadBound any =
      overhead_bound(best_of_each, machine, AlgorithmChoice(program.ops.size(), 0), unlimited,
                     budget, rest, true, more_than_best(program, machine.alignment()));
  if (!any.fluid.feasible) return result;
  if (const auto gap = any.optimality_gap(lowered.iteration_time); !gap) return fail(gap.error());
  result.least_time_of_any = any.least_time();
  result.none_is_faster = lowered.iteration_time <= any.least_time();
  return result;
}

}  // namespace tidepool
