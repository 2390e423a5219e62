// How far a plan may be from the best one: its overhead beyond what no plan can avoid.
#pragma once

#include <optional>
#include <string>

#include "base/json_fwd.h"
#include "bound/tightest.h"
#include "planning/algorithm_choice.h"

namespace tidepool {

/// What no plan with these algorithms inside one budget can avoid.
struct OverheadBound {
  AlgorithmChoice algorithms;
  Nanos compute{};              ///< sum of the device ops' times
  Nanos unlimited{};            ///< an iteration without a budget: what shares refer to
  Nanos unlimited_here{};       ///< the same with these algorithms, if plans may have others
  FluidBound fluid;             ///< the tightest in the time, `stopped` where that was up
  BoundBy by = BoundBy::fluid;  ///< what it is by

  /// The bound holds for plans of this strategy.
  [[nodiscard]] bool covers(const Strategy& strategy) const;
  /// No plan's iteration takes less. Only where the fluid bound is feasible, as the next two.
  [[nodiscard]] Nanos least_time() const {
    return std::max(compute + fluid.overhead, unlimited_here);
  }
  /// Least overhead, and what a plan has beyond it.
  [[nodiscard]] double least_overhead() const;
  /// A plan below the bound is an error of this program (`check_failed`): one of them
  /// is wrong.
  [[nodiscard]] Result<double> optimality_gap(Nanos iteration_time) const;
};

/// Why there is no bound, in a phrase that names fields of PlannerSpec. Empty where there is one.
std::string why_no_bound(const FluidBound& bound, const FluidOptions& options);

/// Sets `bound_stopped` and `bound_refused` (null where it is empty), of a FluidBound: whether one
/// of them is why there is no bound.
void add_missing_bound(Json& json, bool stopped, const std::string& refused);

/// `unlimited`: an iteration without a budget, with the fastest algorithms that plans may choose.
/// Without `recompute`: of plans that only keep and swap. `choices`: of a program with the best
/// algorithms, see FluidProblem.
OverheadBound overhead_bound(const Program& program, const Machine& machine,
                             AlgorithmChoice algorithms, Nanos unlimited, const Budget& budget,
                             const FluidOptions& options, bool recompute = true,
                             const AlgorithmChoices& choices = {});

/// What the bound is for, by the plan itself, whose file may say otherwise: no device op runs for
/// the first time before one in front of it in the program.
bool first_runs_in_order(const Program& program, const Plan& plan);

/// One plan's optimality gap, as a share of the time without a budget, among plans with its
/// algorithms.
struct ProvenGap {
  std::optional<double> least_overhead;
  std::optional<double> gap;
  BoundBy by = BoundBy::fluid;  ///< where it is no other the gap is at most this
  std::string unknown;          ///< why there is no gap, in a phrase; names fields of PlannerSpec
  bool stopped = false;         ///< ... because time was up, or interrupted
  std::string refused;          ///< ... because there is no bound for such a program, and why
  bool choice = false;          ///< plans may have other algorithms, which the gap does not count
  /// Of an iteration with whatever algorithms, where there is a choice and time for a second bound.
  std::optional<Nanos> least_time_of_any;
  bool none_is_faster = false;  ///< the plan takes no longer than that

  /// For people, fields in backquotes.
  [[nodiscard]] std::string text() const;
  /// Sets `least_overhead`, `optimality_gap`, `bound` (as `to_string` has it) and
  /// `least_ms_of_any_algorithms`, null where they are not known, and what `add_missing_bound`
  /// does.
  void add_to(Json& json) const;
};

/// What a bound that is not of all ops is by, in brackets, with the field `time_limit`; empty of
/// one that is.
std::string said_of(BoundBy by, bool stopped);

/// Solves linear programs. Fails like OverheadBound::optimality_gap. `unlimited`: as
/// above.
Result<ProvenGap> proven_gap(const Program& program, const Machine& machine, const Lowered& lowered,
                             Nanos unlimited, const Budget& budget, const FluidOptions& options);

}  // namespace tidepool
