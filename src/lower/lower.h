// lower: Strategy -> Plan. A list of passes: expand and time (evaluate), place (pack), emit.
//
// Where planning time goes (`perf` of bench_plan_scale, `autoswap`): up to 4,000 instances most of
// it into packing by orders; at 100,000 ops a fifth into the cycle sweep, and the rest is spread
// over sharing, packing in order, expanding, timing and the memory they take.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/stop.h"
#include "ir/load_profile.h"
#include "lower/budget.h"
#include "lower/evaluate.h"
#include "lower/placing/place.h"

namespace tidepool {

struct LowerOptions {
  /// When nothing else fits: the streaming schedule, which keeps only the running op's tensors.
  bool allow_streaming = true;
  /// False: every copy-in right before its op. Slow; the smallest budgets leave no other way.
  bool prefetch = true;
  Nanos lead = Nanos::max();  ///< of copies in, see EvaluateOptions
  /// The limit on the memory load to begin with; 0: the budget.
  Bytes load_limit = 0;
  PackingSearch packing;
  /// Plans whose iteration takes as long are of no use: no addresses are looked for. (The streaming
  /// schedule counts all the same.)
  Nanos faster_than = Nanos::max();
  /// Tries with a tighter load limit before giving up on a packing without waits.
  int attempts = 6;
  Stop stop{};  ///< no further tries; the streaming schedule counts all the same
};

struct PassTime {
  std::string pass;
  Nanos time{};
};

struct Lowered {
  Plan plan;
  Strategy strategy;       ///< what was lowered: the given one, or the streaming one
  Nanos iteration_time{};  ///< predicted, steady state
  Nanos unplaced_time{};   ///< the same before addresses added waits
  Nanos compute_time{};
  Bytes load_limit = 0;  ///< the limit under which the timeline was made
  Bytes peak_load = 0;
  std::string packer;
  int added_waits = 0;  ///< waits that address reuse needed beyond the time pass
  bool streaming = false;
  std::vector<Step> steps;  ///< the timeline behind plan.steady, same order
  std::vector<PassTime> pass_times;
  /// What lowering took in all.
  [[nodiscard]] Nanos lowering_time() const;
};

/// As `Lowering::smallest_to_stream` without other limits; what cannot be lowered has the lower
/// bound alone.
SmallestBudget smallest_to_stream(const Program& program, const Machine& machine);

/// For sizes where no machine is known: its copies take hardly any time.
Machine any_machine(Bytes alignment);

/// Everything that stays the same between calls for one program and machine.
class Lowering {
 public:
  /// `program` must be valid and outlive this.
  Lowering(const Program& program, const Machine& machine);

  /// Fails with `infeasible` (naming the smallest feasible budget, and the op and tensors that set
  /// it) when the budget cannot be met, and with `bad_input` when the strategy makes no sense for
  /// the program (a drop without a copy, a recomputation that is not possible). With `faster_than`
  /// also `infeasible` when no plan is as fast.
  Result<Lowered> lower(const Strategy& strategy, const Budget& budget,
                        const LowerOptions& options = {});

  /// Device bytes that the last attempt's addresses needed where no wait may cost time: above the
  /// budget when it did not fit. 0 when it had no timeline.
  [[nodiscard]] Bytes free_footprint() const { return free_footprint_; }

  /// The smallest budget in which the streaming schedule has addresses: enough for every strategy
  /// that may stream. More than `smallest_budget` where bytes that may not move leave holes. What
  /// the budget says of other spaces holds; nothing where it cannot be had in any device.
  std::optional<SmallestBudget> smallest_to_stream(const Budget& budget,
                                                   const LowerOptions& options = {});

  /// Every gap swapped, or dropped where the host still holds the value.
  [[nodiscard]] Strategy everything_away(std::vector<std::int32_t> algorithms) const;

  [[nodiscard]] const Program& program() const { return program_; }
  [[nodiscard]] const AccessIndex& index() const { return index_; }
  [[nodiscard]] const Machine& machine() const { return machine_; }
  [[nodiscard]] Evaluator& evaluator() { return evaluator_; }

  /// From when `stop` says so no strategy is lowered any more: `lower` fails with `interrupted`.
  void give_up_when(Stop stop) { give_up_ = std::move(stop); }

 private:
  struct Attempt;
  struct Pass;
  static const std::array<Pass, 4> kPasses;

  /// All passes. What ended it is in `refused_` and `excess_`.
  std::optional<Lowered> attempt(const Strategy& strategy, const Budget& budget,
                                 const EvaluateOptions& timing, const LowerOptions& options);
  bool expand_and_time(Attempt& a);
  bool place_on_device(Attempt& a);
  bool place_away(Attempt& a);
  bool emit(Attempt& a);
  [[nodiscard]] Result<void> verify_timeline(const Attempt& a);
  [[nodiscard]] Result<void> verify_addresses(const Attempt& a);
  [[nodiscard]] Result<void> verify_plan(const Attempt& a);
  std::optional<Lowered> stream(const Budget& budget, const LowerOptions& options);
  Error why_infeasible(const Strategy& strategy, const Budget& budget, const LowerOptions& options);
  [[nodiscard]] Stop asked_to_give_up(const LowerOptions& options) const;

  const Program& program_;
  Machine machine_;
  AccessIndex index_;
  Evaluator evaluator_;
  Placer placer_;
  Stop give_up_;
  std::vector<PassTime> pass_times_;
  // Of the last attempt.
  std::string refused_;  ///< why the strategy makes no sense, if that ended it
  Bytes excess_ = 0;     ///< device bytes by which addresses exceed the budget where no wait stalls
  Bytes free_footprint_ = 0;
};

}  // namespace tidepool
