#include "planners/published/vdnn/offload_policy.h"

#include <algorithm>

#include "base/at.h"
#include "ir/load_profile.h"

namespace tidepool {

OffloadPolicy::OffloadPolicy(const Program& program, const AccessIndex& index,
                             const std::vector<Bytes>& load, Offloaded what)
    : program_(program), index_(index), what_(what), passes_(program, load) {
  inputs_.resize(passes_.passes().size());
  fetched_.assign(passes_.passes().size(), 0);
  for (const Op& op : program.ops) find_kind(op);
  for (TensorId t = 0; t < static_cast<TensorId>(program.tensors.size()); ++t) find_input(t);
}

std::size_t OffloadPolicy::decide(StrategyBuilder& builder) {
  std::size_t offloaded = 0;
  for (const auto& inputs : inputs_) {
    for (const GapId g : inputs) builder.away(g);
    offloaded += inputs.size();
  }
  for (std::size_t p = 0; p < inputs_.size(); ++p) {
    if (passes_.pass(p).phase == Phase::backward) prefetch_during(p, builder);
  }
  // Nobody asked for them in time.
  for (std::size_t p = 0; p < inputs_.size(); ++p) {
    if (fetched_[p] == 0) hint(p, kNone, builder);
  }
  return offloaded;
}

void OffloadPolicy::find_kind(const Op& op) {
  const auto id = static_cast<OpId>(&op - program_.ops.data());
  const std::int32_t pass = passes_.pass_of(id);
  if (pass == kNone || passes_.phase_of(id) != Phase::forward) return;
  const auto round = static_cast<std::size_t>(std::max(op.round, 0));
  classifier_.resize(std::max(classifier_.size(), round + 1), kNone);
  if (op.kind.starts_with("conv")) {
    convolutions_.push_back(pass);
    classifier_[round] = kNone;
  }
  const bool behind_one =
      !convolutions_.empty() && passes_.pass(at(convolutions_.back())).round == op.round;
  if (op.kind.starts_with("linear") && behind_one && classifier_[round] == kNone) {
    classifier_[round] = pass;
  }
}

/// The gap in which a tensor waits for backward, if it is some layer's input,
/// belongs to the pass that reads it last in forward.
void OffloadPolicy::find_input(TensorId t) {
  const Tensor& tensor = program_.tensors[at(t)];
  const bool map = tensor.kind == TensorKind::activation || tensor.kind == TensorKind::input;
  if (tensor.persistent || !map) return;
  const auto gaps = index_.gaps(t);
  for (std::size_t i = 0; i < gaps.size(); ++i) {
    const Gap& g = gaps[i];
    const bool turns = g.kind == GapKind::device && !g.dead &&
                       passes_.phase_of(g.from) == Phase::forward &&
                       passes_.phase_of(g.to) == Phase::backward;
    if (!turns || !is_offloaded(t, g)) continue;
    const std::int32_t owner = passes_.pass_of(g.from);
    const auto round = static_cast<std::size_t>(std::max(program_.ops[at(g.from)].round, 0));
    const std::int32_t classifier = round < classifier_.size() ? classifier_[round] : kNone;
    if (classifier != kNone && owner >= classifier) continue;
    inputs_[at(owner)].push_back(index_.first_gap(t) + static_cast<GapId>(i));
  }
}

/// A layer that has not made the gap's version reads it before the gap; where only inputs of
/// convolutions are offloaded, one of them.
bool OffloadPolicy::is_offloaded(TensorId t, const Gap& g) const {
  std::int32_t maker = kNone;
  for (const TensorAccess& a : index_.accesses(t)) {
    if (a.op > g.from) break;
    if (a.version_written == g.version) maker = passes_.pass_of(a.op);
    const bool other =
        a.mode == AccessMode::read && a.version_read == g.version && passes_.pass_of(a.op) != maker;
    const bool counts = what_ == Offloaded::all || program_.ops[at(a.op)].kind.starts_with("conv");
    if (other && counts) return true;
  }
  return false;
}

/// What vDNN does when a layer's backward pass begins.
void OffloadPolicy::prefetch_during(std::size_t asking, StrategyBuilder& builder) {
  const LayerPass& asks = passes_.pass(asking);
  // Its own place in forward; ops without one (a loss) stand behind all
  // layers.
  std::int32_t from = kNone;
  for (std::size_t p = 0; p < asking; ++p) {
    const LayerPass& pass = passes_.pass(p);
    if (pass.round != asks.round || pass.phase != Phase::forward) continue;
    from = static_cast<std::int32_t>(p);
    if (pass.layer == asks.layer) break;
  }
  const bool own = from != kNone && passes_.pass(at(from)).layer == asks.layer;
  for (std::int32_t p = own ? from - 1 : from; p >= 0; --p) {
    const LayerPass& pass = passes_.pass(at(p));
    if (pass.round != asks.round || pass.phase != Phase::forward) continue;
    if (!inputs_[at(p)].empty() && fetched_[at(p)] == 0) {
      fetched_[at(p)] = 1;
      hint(at(p), static_cast<std::int32_t>(asking), builder);
      return;
    }
    const bool convolution =
        std::find(convolutions_.begin(), convolutions_.end(), p) != convolutions_.end();
    if (convolution) return;
  }
}

/// Triggers and barriers of a pass's inputs; `asking`: the pass that
/// prefetches them, or kNone.
void OffloadPolicy::hint(std::size_t owner, std::int32_t asking, StrategyBuilder& builder) const {
  for (const GapId id : inputs_[owner]) {
    const Gap& g = gap(id);
    const auto inside = [&](OpId op) { return std::clamp<OpId>(op, g.from + 1, g.to); };
    CopyHint hint;
    hint.gap = id;
    hint.out_barrier = device_op(inside(end_of_next(owner)), g);
    if (asking == kNone) {
      hint.in_trigger = g.to;
    } else {
      const LayerPass& during = passes_.pass(at(asking));
      hint.in_trigger = device_op(inside(during.first), g);
      hint.in_barrier = std::max(device_op(inside(during.last + 1), g), *hint.in_trigger);
    }
    builder.hint(hint);
  }
}

/// The first op behind the pass after this one.
OpId OffloadPolicy::end_of_next(std::size_t pass) const {
  return pass + 1 < inputs_.size() ? passes_.pass(pass + 1).last + 1
                                   : static_cast<OpId>(program_.ops.size()) - 1;
}

/// From here on in the gap; its last op is one.
OpId OffloadPolicy::device_op(OpId op, const Gap& g) const {
  while (op < g.to && program_.ops[at(op)].place == OpPlace::host) ++op;
  return op;
}

Result<OffloadStrategy> offload(const Lowering& lowering, Offloaded what,
                                std::vector<std::int32_t> algorithms) {
  const Program& program = lowering.program();
  const AccessIndex& index = lowering.index();
  StrategyBuilder builder(program, index, algorithms);
  OffloadPolicy policy(
      program, index,
      load_profile(program, index, lowering.machine().alignment(), algorithms).at_op, what);
  OffloadStrategy result;
  result.offloaded = policy.decide(builder);
  auto strategy = builder.build();
  if (!strategy) return fail(strategy.error());
  result.strategy = std::move(*strategy);
  return result;
}

}  // namespace tidepool
