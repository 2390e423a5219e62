#include "planners/published/superneurons/segment_policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/at.h"
#include "base/counted.h"
#include "ir/load_profile.h"
#include "planners/toolkit/published_output.h"
#include "planners/toolkit/recomputation.h"

namespace tidepool {
namespace {

enum class LayerCost : std::uint8_t { checkpoint, cheap, other };

LayerCost cost_of(const Op& maker) {
  if (maker.place == OpPlace::host) return LayerCost::checkpoint;  // data
  const auto is = [&](std::string_view kind) { return maker.kind.find(kind) != std::string::npos; };
  constexpr std::array kCheckpoints{"conv", "softmax", "add_", "concat"};
  constexpr std::array kCheap{"pool", "relu", "gelu", "sigmoid", "tanh",
                              "lrn",  "bn",   "norm", "dropout", "activation"};
  if (std::any_of(kCheckpoints.begin(), kCheckpoints.end(), is)) return LayerCost::checkpoint;
  return std::any_of(kCheap.begin(), kCheap.end(), is) ? LayerCost::cheap : LayerCost::other;
}

}  // namespace

SegmentPolicy::SegmentPolicy(const Lowering& lowering, const MayDecide& may,
                             std::vector<std::int32_t> algorithms)
    : program_(lowering.program()),
      index_(lowering.index()),
      may_(may),
      alignment_(lowering.machine().alignment()),
      passes_(program_, load_profile(program_, index_, alignment_, algorithms).at_op),
      maps_(feature_maps(program_, index_, passes_)),
      algorithms_(std::move(algorithms)) {}

void SegmentPolicy::decide_gaps(StrategyBuilder& builder) const {
  for (const FeatureMap& map : maps_) {
    const LayerCost cost = cost_of(program_.ops[at(map.maker)]);
    if (cost == LayerCost::checkpoint && may_.swap) builder.away(map.gap);
    if (cost == LayerCost::cheap && may_.recompute) builder.recompute(map.gap);
  }
  take_back_impossible(program_, index_, false, builder);
  begin_segments(builder);
}

Strategy SegmentPolicy::decide() {
  StrategyBuilder builder = this->builder();
  decide_gaps(builder);
  prefetch(builder);
  for (const FeatureMap& map : maps_) {
    const Decision decision = builder.decision(map.gap);
    swapped_ += decision == Decision::swap || decision == Decision::drop ? 1 : 0;
    recomputed_ += decision == Decision::recompute ? 1 : 0;
  }
  return builder.strategy();
}

std::string SegmentPolicy::note() const {
  std::string note = fmt::format("{} of checkpoints leave, {} of cheap layers are recomputed",
                                 counted(swapped_, "output"), counted(recomputed_, "output"));
  if (const std::size_t large = segments_over_peak(); large > 0) {
    note +=
        fmt::format(" (in {} the paper would recompute layer by layer)", counted(large, "segment"));
  }
  return note;
}

/// A value whose replay would run a checkpoint again is what that checkpoint passes on.
void SegmentPolicy::begin_segments(StrategyBuilder& builder) const {
  Recomputation recomputation(program_, index_);
  for (const FeatureMap& map : maps_) {
    if (builder.decision(map.gap) != Decision::recompute) continue;
    const auto chain = recomputation.chain(map.gap, builder.strategy());
    const bool runs_checkpoint = !chain || std::any_of(chain->begin(), chain->end(), [&](OpId op) {
      return cost_of(program_.ops[at(op)]) == LayerCost::checkpoint;
    });
    if (runs_checkpoint) may_.swap ? builder.away(map.gap) : builder.keep(map.gap);
  }
  take_back_impossible(program_, index_, false, builder);
}

/// First ops of the backward passes of checkpoint layers, in order.
std::vector<OpId> SegmentPolicy::backward_checkpoints() const {
  std::vector<char> is_checkpoint;
  const auto mark = [&](std::int32_t layer) {
    is_checkpoint.resize(std::max(is_checkpoint.size(), at(layer) + 1), 0);
    is_checkpoint[at(layer)] = 1;
  };
  for (OpId op = 0; op < static_cast<OpId>(program_.ops.size()); ++op) {
    const std::int32_t pass = passes_.pass_of(op);
    if (pass == kNone || passes_.phase_of(op) != Phase::forward) continue;
    if (cost_of(program_.ops[at(op)]) != LayerCost::checkpoint) continue;
    mark(passes_.pass(at(pass)).layer);
  }
  std::vector<OpId> starts;
  for (const LayerPass& pass : passes_.passes()) {
    if (pass.phase != Phase::backward || at(pass.layer) >= is_checkpoint.size()) continue;
    if (is_checkpoint[at(pass.layer)] != 0) starts.push_back(pass.first);
  }
  return starts;
}

void SegmentPolicy::prefetch(StrategyBuilder& builder) const {
  const std::vector<OpId> starts = backward_checkpoints();
  const std::vector<OpId> needed = needed_before(program_, index_, builder.strategy());
  for (const FeatureMap& map : maps_) {
    const OpId need = needed[at(map.gap)];
    if (need == kNone) continue;
    const std::int32_t pass = passes_.pass_of(need);
    const OpId own = pass != kNone ? passes_.pass(at(pass)).first : need;
    const auto behind = std::lower_bound(starts.begin(), starts.end(), own);
    if (behind == starts.begin()) continue;
    const OpId trigger = *std::prev(behind);
    if (trigger <= index_.gaps()[at(map.gap)].from) continue;
    CopyHint hint;
    hint.gap = map.gap;
    hint.in_trigger = trigger;
    builder.hint(hint);
  }
}

/// Segments whose forward makes more bytes than the largest working set of a backward pass.
std::size_t SegmentPolicy::segments_over_peak() const {
  Bytes l_peak = 0;
  Bytes segment = 0;
  std::size_t over = 0;
  for (const LayerPass& pass : passes_.passes()) {
    if (pass.phase == Phase::backward) l_peak = std::max(l_peak, working_set_of(pass));
  }
  const auto end_segment = [&] {
    over += segment > l_peak ? 1 : 0;
    segment = 0;
  };
  for (OpId op = 0; op < static_cast<OpId>(program_.ops.size()); ++op) {
    if (passes_.pass_of(op) == kNone || passes_.phase_of(op) != Phase::forward) continue;
    const LayerCost cost = cost_of(program_.ops[at(op)]);
    if (cost == LayerCost::checkpoint) end_segment();
    if (cost != LayerCost::cheap) continue;
    for (const Access& a : program_.ops[at(op)].accesses) {
      if (a.mode == AccessMode::write) segment += program_.tensors[at(a.tensor)].bytes;
    }
  }
  end_segment();
  return may_.recompute ? over : 0;
}

Bytes SegmentPolicy::working_set_of(const LayerPass& pass) const {
  Bytes most = 0;
  for (OpId op = pass.first; op <= pass.last; ++op) {
    most = std::max(most, working_set(program_, op, alignment_, algorithms_[at(op)]));
  }
  return most;
}

namespace {

/// The fastest deterministic algorithm of an op whose workspace fits.
std::int32_t fastest_within(const Op& op, std::int32_t given, Bytes workspace, Bytes alignment) {
  std::int32_t best = given;
  for (std::size_t i = 0; i < op.algorithms.size(); ++i) {
    const Algorithm& a = op.algorithms[i];
    if (!a.deterministic || !is_measured(a, op)) continue;
    if (align_up(a.workspace, alignment) > workspace) continue;
    if (a.time < op.algorithms[at(best)].time) best = static_cast<std::int32_t>(i);
  }
  return best;
}

}  // namespace

void choose_workspaces(Lowering& lowering, Bytes budget, Strategy& strategy) {
  Evaluator& evaluator = lowering.evaluator();
  if (!evaluator.evaluate(strategy, {.load_limit = budget}).feasible) return;
  const Program& program = lowering.program();
  const Bytes alignment = lowering.machine().alignment();
  const Expansion& expansion = evaluator.expansion();
  std::vector<Bytes> most(program.ops.size(), 0);  // load in any run
  for (std::size_t c = 0; c < expansion.calls.size(); ++c) {
    Bytes& load = most[at(expansion.calls[c].op)];
    load = std::max(load, evaluator.load()[c]);
  }
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    const Op& op = program.ops[i];
    if (op.place == OpPlace::host) continue;
    std::int32_t& chosen = strategy.algorithms[i];
    const Bytes own = align_up(op.algorithms[at(chosen)].workspace, alignment);
    chosen = fastest_within(op, chosen, budget - most[i] + own, alignment);
  }
}

Result<PlannerOutput> segment_output(PlannerContext& context, const MayDecide& may) {
  Lowering& lowering = context.lowering();
  const Program& program = lowering.program();
  SegmentPolicy policy(
      lowering, may,
      may.algorithms ? least_workspace_algorithms(program) : context.algorithms(program));
  const Strategy strategy = policy.decide();
  if (may.algorithms) {
    Strategy faster = strategy;
    choose_workspaces(lowering, context.budget().device, faster);
    Trial trial = place(lowering, faster, context.budget(), {});
    if (trial.lowered) return PlannerOutput{std::move(*trial.lowered), {policy.note()}};
  }
  return published_output(context, strategy, policy.note(), "SuperNeurons");
}

}  // namespace tidepool
