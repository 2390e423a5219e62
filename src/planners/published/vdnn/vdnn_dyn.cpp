#include "planners/published/vdnn/vdnn_dyn.h"

#include <fmt/format.h>

#include <map>
#include <tuple>
#include <vector>

#include "base/at.h"
#include "base/counted.h"
#include "ir/load_profile.h"
#include "planners/published/vdnn/offload_policy.h"
#include "planners/registry.h"
#include "planners/toolkit/published_output.h"

namespace tidepool {
namespace {

/// The algorithm of the next smaller workspace; of several the fastest. False: there is none.
bool downgrade(const Op& op, std::int32_t& algorithm) {
  const Bytes now = op.algorithms[at(algorithm)].workspace;
  std::int32_t best = kNone;
  for (std::size_t i = 0; i < op.algorithms.size(); ++i) {
    const Algorithm& a = op.algorithms[i];
    if (!a.deterministic || !is_measured(a, op) || a.workspace >= now) continue;
    const Algorithm* other = best == kNone ? nullptr : &op.algorithms[at(best)];
    const bool better = other == nullptr || a.workspace > other->workspace ||
                        (a.workspace == other->workspace && a.time < other->time);
    if (better) best = static_cast<std::int32_t>(i);
  }
  if (best == kNone) return false;
  algorithm = best;
  return true;
}

constexpr const char* kKept = "nothing is offloaded, with the fastest algorithms";

/// Per op: the ops that do the same in the rounds of the program, by the same number.
std::vector<std::int32_t> same_in_rounds(const Program& program) {
  using Place = std::tuple<std::int32_t, Phase, std::string_view, std::int32_t>;
  std::map<Place, std::int32_t> numbers;
  std::map<Place, std::int32_t> seen;  // of a round, by what they are and the round
  std::vector<std::int32_t> same;
  for (const Op& op : program.ops) {
    const std::int32_t nth = seen[{op.layer, op.phase, op.kind, op.round}]++;
    const auto next = static_cast<std::int32_t>(numbers.size());
    same.push_back(numbers.try_emplace({op.layer, op.phase, op.kind, nth}, next).first->second);
  }
  return same;
}

class DynamicVdnn {
 public:
  DynamicVdnn(PlannerContext& context, Lowering& lowering, Downgrade how)
      : context_(context),
        lowering_(lowering),
        program_(lowering.program()),
        stop_(context.options().stop) {
    if (how == Downgrade::op_by_op) return;
    same_ = same_in_rounds(program_);
    stop_ = context.stopped_or_late();  // programs of many rounds are large
  }

  Result<std::optional<PlannerOutput>> plan() {
    const MayDecide& may = context_.options().may;
    const auto least =
        may.algorithms ? least_workspace_algorithms(program_) : context_.algorithms(program_);
    const auto fastest = may.algorithms ? fastest_algorithms(program_) : least;
    const Strategy kept = keep_everything(program_, lowering_.index(), fastest);
    std::optional<Trial> last;
    if (may.swap) {
      auto all_m = offload(lowering_, Offloaded::all, least);
      if (!all_m) return fail(all_m.error());
      last = place(lowering_, all_m->strategy, context_.budget(), {});
      if (!last->lowered) return std::nullopt;
      last_note_ = fmt::format("all(m): {} inputs of layers are offloaded", all_m->offloaded);
    }
    if (Trial trial = place(lowering_, kept, context_.budget(), {}); trial.lowered) {
      return done(trial, kKept);
    }
    if (!last) return std::nullopt;
    for (const bool downgrading : {false, true}) {
      if (downgrading && !may.algorithms) break;
      for (const Offloaded what : {Offloaded::convolutions, Offloaded::all}) {
        if (stop_.requested()) break;
        auto with_p = offload(lowering_, what, fastest);
        if (!with_p) return fail(with_p.error());
        int steps = 0;
        Trial trial = downgrading ? place_downgraded(with_p->strategy, steps)
                                  : place(lowering_, with_p->strategy, context_.budget(), {});
        if (!trial.lowered) continue;
        std::string note = what == Offloaded::all ? "all(p)" : "conv(p)";
        if (downgrading) note += fmt::format(" after {}", counted(steps, "downgrade"));
        return done(trial,
                    fmt::format("{}: {} inputs of layers are offloaded", note, with_p->offloaded));
      }
    }
    return done(*last, std::move(last_note_));
  }

 private:
  static std::optional<PlannerOutput> done(Trial& trial, std::string note) {
    return PlannerOutput{std::move(*trial.lowered), {std::move(note)}};
  }

  /// One step down after the other until it fits; no address where there is no step left.
  Trial place_downgraded(Strategy& strategy, int& steps) {
    const Bytes budget = context_.budget().device;
    while (!stop_.requested()) {
      const Evaluation evaluation =
          lowering_.evaluator().evaluate(strategy, {.load_limit = budget});
      OpId over = evaluation.stuck;
      if (evaluation.feasible) {
        over = op_at_peak(strategy);
        Trial trial = place(lowering_, strategy, context_.budget(), {});
        if (trial.lowered) return trial;
      }
      if (over == kNone || !step_down(over, strategy)) break;
      ++steps;
    }
    return {};
  }

  bool step_down(OpId over, Strategy& strategy) const {
    if (!downgrade(program_.ops[at(over)], strategy.algorithms[at(over)])) return false;
    for (OpId op = 0; op < std::ssize(same_); ++op) {
      if (op == over || same_[at(op)] != same_[at(over)]) continue;
      downgrade(program_.ops[at(op)], strategy.algorithms[at(op)]);
    }
    return true;
  }

  /// Of the last evaluation: the op with the highest load of those that can be downgraded.
  OpId op_at_peak(const Strategy& strategy) {
    const auto load = lowering_.evaluator().load();
    OpId best = kNone;
    for (std::size_t i = 0; i < load.size(); ++i) {
      std::int32_t algorithm = strategy.algorithms[i];
      if (!downgrade(program_.ops[i], algorithm)) continue;
      if (best == kNone || load[i] > load[at(best)]) best = static_cast<OpId>(i);
    }
    return best;
  }

  PlannerContext& context_;
  Lowering& lowering_;
  const Program& program_;
  Stop stop_;
  std::vector<std::int32_t> same_;  ///< see same_in_rounds; empty: op by op
  std::string last_note_;
};

class VdnnDyn : public Planner {
 public:
  [[nodiscard]] std::string_view name() const override { return "vdnn-dyn"; }

  Result<PlannerOutput> plan(PlannerContext& context) override {
    auto tried = try_vdnn_dyn(context, context.lowering(), Downgrade::op_by_op);
    if (!tried) return fail(tried.error());
    if (*tried) return std::move(**tried);
    return cannot_train(context,
                        context.options().may.swap
                            ? "all(m), with every layer's input offloaded, does not fit"
                            : fmt::format("{}; the plan does not fit", kKept),
                        "vDNN");
  }
};

}  // namespace

Result<std::optional<PlannerOutput>> try_vdnn_dyn(PlannerContext& context, Lowering& lowering,
                                                  Downgrade downgrade) {
  return DynamicVdnn(context, lowering, downgrade).plan();
}

std::unique_ptr<Planner> make_vdnn_dyn() { return std::make_unique<VdnnDyn>(); }

PlannerInfo vdnn_dyn_planner() {
  return {.name = "vdnn-dyn",
          .description = "tries what to offload and the algorithms, fastest first (vDNN)",
          .make = make_vdnn_dyn,
          .chooses_algorithms = true};
}

}  // namespace tidepool
