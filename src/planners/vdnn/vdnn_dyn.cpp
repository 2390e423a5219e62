#include "planners/vdnn/vdnn_dyn.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/at.h"
#include "base/counted.h"
#include "ir/load_profile.h"
#include "planners/registry.h"
#include "planners/toolkit/published_output.h"
#include "planners/vdnn/offload_policy.h"

namespace tidepool {
namespace {

/// The algorithm of the next smaller workspace; of several the fastest. False: there is none.
bool downgrade(const Op& op, std::int32_t& algorithm) {
  const Bytes now = op.algorithms[at(algorithm)].workspace;
  std::int32_t best = kNone;
  for (std::size_t i = 0; i < op.algorithms.size(); ++i) {
    const Algorithm& a = op.algorithms[i];
    if (!a.deterministic || a.workspace >= now) continue;
    const Algorithm* other = best == kNone ? nullptr : &op.algorithms[at(best)];
    const bool better = other == nullptr || a.workspace > other->workspace ||
                        (a.workspace == other->workspace && a.time < other->time);
    if (better) best = static_cast<std::int32_t>(i);
  }
  if (best == kNone) return false;
  algorithm = best;
  return true;
}

class VdnnDyn : public Planner {
 public:
  [[nodiscard]] std::string_view name() const override { return "vdnn-dyn"; }

  Result<PlannerOutput> plan(PlannerContext& context) override {
    Lowering& lowering = context.lowering();
    const Program& program = lowering.program();
    const MayDecide& may = context.options().may;
    const auto least =
        may.algorithms ? least_workspace_algorithms(program) : context.algorithms(program);
    const auto fastest = may.algorithms ? fastest_algorithms(program) : least;
    const Strategy kept = keep_everything(program, lowering.index(), fastest);
    if (!may.swap) return published_output(context, kept, kKept, "vDNN");
    auto all_m = offload(lowering, Offloaded::all, least);
    if (!all_m) return fail(all_m.error());
    Trial last = place(lowering, all_m->strategy, context.budget(), {});
    if (!last.lowered) {
      return cannot_train(context, "all(m), with every layer's input offloaded, does not fit",
                          "vDNN");
    }
    const auto done = [](Trial& trial, std::string note) {
      return PlannerOutput{std::move(*trial.lowered), {std::move(note)}};
    };
    if (Trial trial = place(lowering, kept, context.budget(), {}); trial.lowered) {
      return done(trial, kKept);
    }
    for (const bool downgrading : {false, true}) {
      if (downgrading && !may.algorithms) break;
      for (const Offloaded what : {Offloaded::convolutions, Offloaded::all}) {
        if (context.stopped()) break;
        auto with_p = offload(lowering, what, fastest);
        if (!with_p) return fail(with_p.error());
        int steps = 0;
        Trial trial = downgrading ? place_downgraded(context, with_p->strategy, steps)
                                  : place(lowering, with_p->strategy, context.budget(), {});
        if (!trial.lowered) continue;
        std::string note = what == Offloaded::all ? "all(p)" : "conv(p)";
        if (downgrading) note += fmt::format(" after {}", counted(steps, "downgrade"));
        return done(trial,
                    fmt::format("{}: {} inputs of layers are offloaded", note, with_p->offloaded));
      }
    }
    return done(last, fmt::format("all(m): {} inputs of layers are offloaded", all_m->offloaded));
  }

 private:
  static constexpr const char* kKept = "nothing is offloaded, with the fastest algorithms";

  /// One step down after the other until it fits; no address where there is no step left.
  static Trial place_downgraded(PlannerContext& context, Strategy& strategy, int& steps) {
    Lowering& lowering = context.lowering();
    const Program& program = lowering.program();
    const Bytes budget = context.budget().device;
    while (!context.stopped()) {
      const Evaluation evaluation = lowering.evaluator().evaluate(strategy, {.load_limit = budget});
      OpId over = evaluation.stuck;
      if (evaluation.feasible) {
        over = op_at_peak(lowering, strategy);
        Trial trial = place(lowering, strategy, context.budget(), {});
        if (trial.lowered) return trial;
      }
      if (over == kNone || !downgrade(program.ops[at(over)], strategy.algorithms[at(over)])) break;
      ++steps;
    }
    return {};
  }

  /// Of the last evaluation: the op with the highest load of those that can be downgraded.
  static OpId op_at_peak(Lowering& lowering, const Strategy& strategy) {
    const auto load = lowering.evaluator().load();
    OpId best = kNone;
    for (std::size_t i = 0; i < load.size(); ++i) {
      std::int32_t algorithm = strategy.algorithms[i];
      if (!downgrade(lowering.program().ops[i], algorithm)) continue;
      if (best == kNone || load[i] > load[at(best)]) best = static_cast<OpId>(i);
    }
    return best;
  }
};

}  // namespace

std::unique_ptr<Planner> make_vdnn_dyn() { return std::make_unique<VdnnDyn>(); }

PlannerInfo vdnn_dyn_planner() {
  return {.name = "vdnn-dyn",
          .description = "tries what to offload and the algorithms, fastest first (vDNN)",
          .make = make_vdnn_dyn,
          .chooses_algorithms = true};
}

}  // namespace tidepool
