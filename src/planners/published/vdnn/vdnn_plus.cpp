#include "planners/published/vdnn/vdnn_plus.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "base/at.h"
#include "planners/published/modnn/sub_batch.h"
#include "planners/published/vdnn/offload_policy.h"
#include "planners/registry.h"
#include "planners/toolkit/published_output.h"

namespace tidepool {
namespace {

/// What is persistent and what the device ops of a round use, all at once, and their largest
/// workspace. Of the first round: sums over rounds are not of the paper, whose libraries add in
/// place.
Bytes involved_bytes(const Program& program, std::span<const std::int32_t> algorithms,
                     Bytes alignment) {
  std::vector<char> involved(program.tensors.size(), 0);
  Bytes workspace = 0;
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    const Op& op = program.ops[i];
    if (op.place != OpPlace::device) continue;
    workspace = std::max(workspace, op.algorithms[at(algorithms[i])].workspace);
    const bool of_round = op.round == 0 && op.phase != Phase::update;
    for (const Access& access : op.accesses) {
      if (of_round || program.tensors[at(access.tensor)].persistent)
        involved[at(access.tensor)] = 1;
    }
  }
  Bytes bytes = workspace;
  for (std::size_t t = 0; t < involved.size(); ++t) {
    if (involved[t] != 0) bytes += align_up(program.tensors[t].bytes, alignment);
  }
  return bytes;
}

/// The published policies for one size of rounds.
class StaticVdnn {
 public:
  StaticVdnn(PlannerContext& context, Lowering& lowering)
      : context_(context), lowering_(lowering), program_(lowering.program()) {}

  /// Nothing where none of them fits.
  Result<std::optional<PlannerOutput>> plan() {
    const MayDecide& may = context_.options().may;
    const auto stated = context_.algorithms(program_);
    const auto fastest = may.algorithms ? fastest_algorithms(program_) : stated;
    const Bytes involved = involved_bytes(program_, fastest, lowering_.machine().alignment());
    if (!may.swap || involved <= context_.budget().device) {
      Trial kept = place(lowering_, keep_everything(program_, lowering_.index(), fastest),
                         context_.budget(), {});
      if (kept.lowered) return done(kept, "all data of a round fit: nothing is offloaded");
    }
    if (!may.swap) return std::nullopt;
    auto output = faster_policy(fastest);
    if (!output || *output || !may.algorithms) return output;
    return faster_policy(least_workspace_algorithms(program_));
  }

 private:
  static std::optional<PlannerOutput> done(Trial& trial, std::string note) {
    return PlannerOutput{std::move(*trial.lowered), {std::move(note)}};
  }

  Result<std::optional<PlannerOutput>> faster_policy(const std::vector<std::int32_t>& algorithms) {
    std::optional<Trial> best;
    std::string note;
    for (const Offloaded what : {Offloaded::convolutions, Offloaded::all}) {
      auto policy = offload(lowering_, what, algorithms);
      if (!policy) return fail(policy.error());
      Trial trial = place(lowering_, policy->strategy, context_.budget(), {});
      if (!trial.lowered) continue;
      if (best && best->lowered->iteration_time <= trial.lowered->iteration_time) continue;
      best = std::move(trial);
      note = fmt::format("{}: {} inputs of layers are offloaded",
                         what == Offloaded::all ? "all" : "conv", policy->offloaded);
    }
    if (!best) return std::nullopt;
    return done(*best, std::move(note));
  }

  PlannerContext& context_;
  Lowering& lowering_;
  const Program& program_;
};

class VdnnPlus : public Planner {
 public:
  [[nodiscard]] std::string_view name() const override { return "vdnn-plus"; }

  Result<PlannerOutput> plan(PlannerContext& context) override {
    const auto chosen = modnn::sub_batches_from_chosen(context, {});
    if (!chosen) return fail(chosen.error());
    return in_first_size(context, chosen->sizes, "vDNN+",
                         [&](Lowering& lowering) { return StaticVdnn(context, lowering).plan(); });
  }
};

}  // namespace

std::unique_ptr<Planner> make_vdnn_plus() { return std::make_unique<VdnnPlus>(); }

PlannerInfo vdnn_plus_planner() {
  return {
      .name = "vdnn-plus",
      .description = "vDNN in rounds that moDNN's rule chooses, as moDNN's paper has it (vDNN+)",
      .make = make_vdnn_plus,
      .chooses_sub_batch = true,
      .chooses_algorithms = true};
}

}  // namespace tidepool
