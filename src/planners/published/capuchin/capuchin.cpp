#include "planners/published/capuchin/capuchin.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/at.h"
#include "base/counted.h"
#include "base/median.h"
#include "planners/published/capuchin/capuchin_policy.h"
#include "planners/registry.h"
#include "planners/toolkit/load_limit.h"
#include "planners/toolkit/published_output.h"

namespace tidepool {
namespace {

/// How long the device waits before each op, recomputations for it included. `stall(i)`: before
/// step i.
template <class Stall>
std::vector<Nanos> waits_before(std::size_t ops, std::span<const Step> steps,
                                const Expansion& expansion, const Stall& stall) {
  std::vector<Nanos> waits(ops, Nanos{0});
  Nanos wait{0};
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].kind != StepKind::op) continue;
    const Call& call = expansion.calls[at(steps[i].id)];
    wait += std::max(stall(i), Nanos{0});
    if (call.clone) continue;
    waits[at(call.op)] = wait;
    wait = Nanos{0};
  }
  return waits;
}

/// How long the ops take by the plan's times, for each second that they took on the device.
double planned_per_second(std::span<const Step> steps, const Observation& seen) {
  Nanos planned{0};
  Nanos measured{0};
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].kind != StepKind::op || seen.durations[i] <= Nanos{0}) continue;
    planned += steps[i].duration;
    measured += seen.durations[i];
  }
  return measured > Nanos{0} ? to_seconds(planned) / to_seconds(measured) : 1;
}

/// How long the device is idle between two ops anyway.
Nanos usual_stall(std::span<const Step> steps, const Observation& seen) {
  std::vector<Nanos> stalls;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].kind == StepKind::op && seen.stalls[i] >= Nanos{0})
      stalls.push_back(seen.stalls[i]);
  }
  return stalls.empty() ? Nanos{0} : median(stalls);
}

class Capuchin : public Planner {
 public:
  [[nodiscard]] std::string_view name() const override { return "capuchin"; }

  Result<PlannerOutput> plan(PlannerContext& context) override {
    const MayDecide& may = context.options().may;
    if (!may.swap && !may.recompute) return PlannerOutput{context.everything_kept(), {}};
    Lowering& lowering = context.lowering();
    CapuchinPolicy policy(lowering, may, context.algorithms(lowering.program()));
    Fitting best = fitting(policy, context);
    if (!best.lowered && context.stopped()) {
      return fail(ErrorCode::interrupted, "interrupted while planning");
    }
    if (!best.lowered) {
      return cannot_train(context, "swaps and recomputations do not save enough", "Capuchin");
    }
    std::vector<Nanos> earlier(lowering.index().gaps().size(), Nanos{0});
    const int rounds = correct(policy, context, earlier, best);
    std::string note = fmt::format("{}, {} recomputed, {} of feedback on predicted times",
                                   counted(policy.swaps().size(), "gap") + " swapped",
                                   policy.recomputed().size(), counted(rounds, "iteration"));
    if (const std::size_t moved = learn(policy, context, earlier, best); moved > 0) {
      note += fmt::format(", {} in moved as observed",
                          moved == 1 ? "1 copy" : fmt::format("{} copies", moved));
    }
    return PlannerOutput{std::move(*best.lowered), {std::move(note)}};
  }

 private:
  static constexpr int kFeedback = 20;  // iterations; 20 times 5 % are a whole copy
  static constexpr Bytes kSteps = 50;   // of the budget, by which the limit goes down

  /// A plan, and the limits under which it was made: that of the choice and that of the timeline.
  struct Fitting {
    std::optional<Lowered> lowered;
    Bytes chosen_for = 0;
    Bytes timed_for = 0;
  };

  /// The fastest of the plans found. The policy is left with what it chose for it.
  static Fitting fitting(CapuchinPolicy& policy, PlannerContext& context) {
    Fitting best;
    // Recomputations need memory beside what the choice counts, so the timeline may have all of the
    // budget at first. A timeline in less leaves addresses more room.
    bool waits = tighten(policy, context, false, best);
    if (waits) waits = tighten(policy, context, true, best);
    // What replays need at a time is not in the load that the choice counts: swaps need no more.
    if (!best.lowered && context.options().may.swap && !context.stopped()) {
      policy.swap_only();
      if (tighten(policy, context, false, best)) tighten(policy, context, true, best);
    }
    if (best.lowered) policy.choose(best.chosen_for, {});
    return best;
  }

  /// From the budget down until the addresses fit without waits. `both`: the limit is one on the
  /// timeline too. Whether none did.
  static bool tighten(CapuchinPolicy& policy, PlannerContext& context, bool both, Fitting& best) {
    LoadLimit limit(context.budget().device, kSteps);
    if (!go_down(policy, context, both, limit, best)) return false;
    if (best.lowered || context.stopped()) return true;
    limit.begin_small_steps();
    return go_down(policy, context, both, limit, best);
  }

  static bool go_down(CapuchinPolicy& policy, PlannerContext& context, bool both, LoadLimit& limit,
                      Fitting& best) {
    const Bytes budget = context.budget().device;
    while (limit.bytes() > 0 && !(best.lowered && context.stopped())) {
      if (!policy.choose(limit.bytes(), context.options().stop)) break;
      Bytes excess = 0;
      const Bytes timed_for = both ? limit.bytes() : budget;
      if (attempt(policy, context, {{}, limit.bytes(), timed_for}, best, excess)) return false;
      limit.tighten(excess);
    }
    return true;
  }

  /// Whether its addresses wait for nothing. `excess`: of the addresses, where it is known.
  static bool attempt(CapuchinPolicy& policy, PlannerContext& context, Fitting next, Fitting& best,
                      Bytes& excess) {
    LowerOptions options;
    options.attempts = 1;
    options.load_limit = next.timed_for;
    if (best.lowered) options.faster_than = best.lowered->iteration_time;
    Trial trial = tidepool::place(context.lowering(), policy.strategy(next.timed_for, {}),
                                  context.budget(), options);
    if (trial.needed > 0) excess = trial.excess(context.budget());
    if (!trial.lowered || trial.lowered->iteration_time >= options.faster_than) return false;
    const bool waits_for_nothing = trial.lowered->iteration_time == trial.lowered->unplaced_time;
    next.lowered = std::move(trial.lowered);
    best = std::move(next);
    return waits_for_nothing;
  }

  /// Iterations of feedback on predicted times. Returns their number.
  static int correct(CapuchinPolicy& policy, PlannerContext& context, std::vector<Nanos>& earlier,
                     Fitting& best) {
    Evaluator& evaluator = context.lowering().evaluator();
    const std::size_t ops = context.lowering().program().ops.size();
    std::vector<Nanos> trial = earlier;
    std::vector<Nanos> best_trial = earlier;
    Nanos best_time = Nanos::max();
    int rounds = 0;
    for (; !context.stopped(); ++rounds) {
      const Evaluation evaluation = evaluator.evaluate(policy.strategy(best.timed_for, trial),
                                                       {.load_limit = best.timed_for});
      if (!evaluation.feasible) break;
      if (evaluation.iteration_time < best_time) {
        best_time = evaluation.iteration_time;
        best_trial = trial;
      }
      const auto late = policy.late(waits_of(ops, evaluator));
      if (late.empty() || rounds == kFeedback) break;
      for (const GapId g : late) trial[at(g)] += policy.in_time(g) / kFeedback;
    }
    if (best_time < best.lowered->iteration_time && best_trial != earlier) {
      LowerOptions options;
      options.load_limit = best.timed_for;
      options.faster_than = best.lowered->iteration_time;
      Trial placed =
          tidepool::place(context.lowering(), policy.strategy(best.timed_for, best_trial),
                          context.budget(), options);
      if (placed.lowered) {
        best.lowered = std::move(placed.lowered);
        earlier = best_trial;
      }
    }
    return rounds;
  }

  static std::vector<Nanos> waits_of(std::size_t ops, Evaluator& evaluator) {
    const std::span<const Step> steps = evaluator.steps();
    Nanos ready{0};
    return waits_before(ops, steps, evaluator.expansion(), [&](std::size_t i) {
      if (steps[i].stream != evaluator.streams().compute) return Nanos{0};
      const Nanos stall = steps[i].start - ready;
      ready = steps[i].end;
      return stall;
    });
  }

  /// Corrects the plan by each observation in turn. Returns how many copies in were moved.
  static std::size_t learn(CapuchinPolicy& policy, PlannerContext& context,
                           std::vector<Nanos> earlier, Fitting& best) {
    const std::vector<Nanos> before = earlier;
    for (const Observation& seen : context.options().observations) {
      if (!learn_from(seen, policy, context, earlier, best)) break;
    }
    std::size_t moved = 0;
    for (std::size_t g = 0; g < before.size(); ++g) moved += earlier[g] != before[g] ? 1 : 0;
    return moved;
  }

  /// Whether it is of this plan and changes it.
  static bool learn_from(const Observation& seen, CapuchinPolicy& policy, PlannerContext& context,
                         std::vector<Nanos>& earlier, Fitting& best) {
    const Lowered& lowered = *best.lowered;
    if (!decide_the_same(seen.strategy, lowered.strategy)) return false;
    const std::size_t steps = lowered.steps.size();
    if (seen.stalls.size() != steps || seen.durations.size() != steps) return false;
    const Lowering& lowering = context.lowering();
    Expansion expansion;
    const std::string refused =
        Expander(lowering.program(), lowering.index()).expand(lowered.strategy, expansion);
    if (!refused.empty()) return false;
    policy.strategy(best.timed_for, earlier);  // says what is needed when
    const Nanos usual = usual_stall(lowered.steps, seen);
    const std::vector<Nanos> waits =
        waits_before(lowering.program().ops.size(), lowered.steps, expansion,
                     [&](std::size_t i) { return seen.stalls[i] - usual; });
    std::vector<Nanos> moved = earlier;
    const double scale = planned_per_second(lowered.steps, seen);
    for (const GapId g : policy.late(waits)) {
      const Nanos step = std::max(policy.in_time(g) / kFeedback, Nanos{1});
      const Nanos wait = from_seconds(scale * to_seconds(waits[at(policy.reader(g))]));
      moved[at(g)] += wait / step * step;
    }
    const Strategy corrected = policy.strategy(best.timed_for, moved);
    if (decide_the_same(corrected, lowered.strategy)) return false;
    LowerOptions options;
    options.load_limit = best.timed_for;
    Trial placed = tidepool::place(context.lowering(), corrected, context.budget(), options);
    if (!placed.lowered) return false;
    best.lowered = std::move(placed.lowered);
    earlier = std::move(moved);
    return true;
  }
};

}  // namespace

std::unique_ptr<Planner> make_capuchin() { return std::make_unique<Capuchin>(); }

PlannerInfo capuchin_planner() {
  return {.name = "capuchin",
          .description = "swaps by free time, recomputes where that costs less (Capuchin)",
          .make = make_capuchin,
          .corrects_itself = true,
          .is_slow = true};
}

}  // namespace tidepool
