#include "planners/published/geeps.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/at.h"
#include "base/counted.h"
#include "base/quantity.h"
#include "planners/registry.h"
#include "planners/toolkit/load_limit.h"
#include "planners/toolkit/peak_curve.h"
#include "planners/toolkit/published_output.h"
#include "planners/toolkit/strategy_builder.h"

namespace tidepool {
namespace {

/// Which tensors are pinned. See Note [GeePS].
class Pinning {
 public:
  Pinning(const Lowering& lowering, std::span<const std::int32_t> algorithms, Bytes budget)
      : program_(lowering.program()),
        index_(lowering.index()),
        alignment_(lowering.machine().alignment()),
        budget_(budget),
        accessed_(sets(algorithms)),
        unpinned_(accessed_),
        pinned_load_(std::vector<Bytes>(program_.ops.size(), 0)),
        pinned_(program_.tensors.size(), 0) {
    for (std::size_t t = 0; t < pinned_.size(); ++t) {
      const auto id = static_cast<TensorId>(t);
      if (program_.tensors[t].pinned) {
        change(id, true);
      } else if (program_.tensors[t].home == Home::device) {
        hold_at_home(id, 1);
      }
    }
  }

  void choose(const Stop& stop) {
    while (!stop.requested() && unpinned_.peak() > 0 && pin_largest_of(unpinned_.peak_op())) {
    }
    const std::vector<Bytes> left = unpinned_.load();
    std::vector<OpId> order(left.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](OpId a, OpId b) { return left[at(a)] > left[at(b)]; });
    for (const OpId op : order) {
      while (!stop.requested() && pin_largest_of(op)) {
      }
    }
  }

  [[nodiscard]] bool is_pinned(TensorId t) const { return pinned_[at(t)] != 0; }
  [[nodiscard]] Bytes buffer() const { return 2 * unpinned_.peak(); }
  [[nodiscard]] Bytes taken() const { return pinned_load_.peak() + buffer(); }
  [[nodiscard]] std::size_t count() const {
    return static_cast<std::size_t>(std::count(pinned_.begin(), pinned_.end(), 1));
  }

 private:
  [[nodiscard]] Bytes bytes(TensorId t) const {
    return align_up(program_.tensors[at(t)].bytes, alignment_);
  }
  [[nodiscard]] bool on_device(OpId op) const {
    return program_.ops[at(op)].place == OpPlace::device;
  }

  /// What each op accesses, with its workspace.
  [[nodiscard]] std::vector<Bytes> sets(std::span<const std::int32_t> algorithms) const {
    std::vector<Bytes> result(program_.ops.size(), 0);
    for (std::size_t i = 0; i < result.size(); ++i) {
      if (!on_device(static_cast<OpId>(i))) continue;
      const Op& op = program_.ops[i];
      result[i] = align_up(op.algorithms[at(algorithms[i])].workspace, alignment_);
      for (const Access& a : op.accesses) result[i] += bytes(a.tensor);
    }
    return result;
  }

  /// What is taken over the iteration's end, whether the tensor is pinned or streams.
  void hold_at_home(TensorId t, Bytes times) {
    const auto accesses = index_.accesses(t);
    const Bytes more = times * bytes(t);
    pinned_load_.lower(0, accesses.front().op, -more);
    pinned_load_.lower(accesses.back().op + 1, static_cast<OpId>(program_.ops.size()), -more);
  }

  void change(TensorId t, bool pin) {
    pinned_[at(t)] = pin ? 1 : 0;
    const Bytes more = pin ? bytes(t) : -bytes(t);
    OpId first = kNone;
    OpId last = kNone;
    for (const TensorAccess& a : index_.accesses(t)) {
      if (!on_device(a.op)) continue;
      if (first == kNone) first = a.op;
      last = a.op;
      unpinned_.lower(a.op, a.op + 1, more);
    }
    if (first == kNone) return;
    if (program_.tensors[at(t)].persistent) {
      first = 0;
      last = static_cast<OpId>(program_.ops.size()) - 1;
    }
    last = std::max(last, program_.tensors[at(t)].released_at);
    const Tensor& tensor = program_.tensors[at(t)];
    if (tensor.home == Home::device && !tensor.pinned) hold_at_home(t, pin ? -1 : 1);
    pinned_load_.lower(first, last + 1, -more);
  }

  /// The largest unpinned tensor of an op with which it still fits, or takes less than before.
  bool pin_largest_of(OpId op) {
    std::vector<TensorId> tensors;
    for (const Access& a : program_.ops[at(op)].accesses) {
      if (on_device(op) && !is_pinned(a.tensor)) tensors.push_back(a.tensor);
    }
    std::stable_sort(tensors.begin(), tensors.end(),
                     [&](TensorId a, TensorId b) { return bytes(a) > bytes(b); });
    const Bytes before = taken();
    for (const TensorId t : tensors) {
      change(t, true);
      if (taken() <= budget_ || taken() < before) return true;
      change(t, false);
    }
    return false;
  }

  const Program& program_;
  const AccessIndex& index_;
  Bytes alignment_;
  Bytes budget_;
  std::vector<Bytes> accessed_;
  PeakCurve unpinned_;     ///< per op: what it accesses of the rest
  PeakCurve pinned_load_;  ///< per op
  std::vector<char> pinned_;
};

/// The device op that runs before another, of the same iteration; kNone: there is none.
OpId device_op_before(const Program& program, OpId op) {
  OpId before = op - 1;
  while (before >= 0 && program.ops[at(before)].place == OpPlace::host) --before;
  return before;
}

/// All gaps of the others are away, but from one device op to the next.
Strategy stream_unpinned(const Lowering& lowering, const Pinning& pinning,
                         std::vector<std::int32_t> algorithms) {
  const Program& program = lowering.program();
  const AccessIndex& index = lowering.index();
  StrategyBuilder builder(program, index, std::move(algorithms));
  const OpId last = device_op_before(program, static_cast<OpId>(program.ops.size()));
  for (GapId g = 0; g < static_cast<GapId>(index.gaps().size()); ++g) {
    const Gap& gap = index.gaps()[at(g)];
    if (gap.kind != GapKind::device || pinning.is_pinned(gap.tensor)) continue;
    const OpId before = device_op_before(program, gap.to);
    const bool next = gap.wraps ? before == kNone && gap.from == last : before == gap.from;
    if (next) continue;
    builder.away(g);
    // No hints where the copy out already belongs to the next iteration.
    if (before == kNone || gap.from + 1 == static_cast<OpId>(program.ops.size())) continue;
    CopyHint hint;
    hint.gap = g;
    hint.in_trigger = before;
    builder.hint(hint);
  }
  return builder.strategy();
}

class Geeps : public Planner {
 public:
  [[nodiscard]] std::string_view name() const override { return "geeps"; }

  Result<PlannerOutput> plan(PlannerContext& context) override {
    if (!context.options().may.swap) return PlannerOutput{context.everything_kept(), {}};
    const Lowering& lowering = context.lowering();
    const auto algorithms = context.algorithms(lowering.program());
    LoadLimit limit(context.budget().device, kSteps);
    std::string first_note;
    do {
      while (limit.bytes() > 0) {
        Pinning pinning(lowering, algorithms, limit.bytes());
        pinning.choose(context.options().stop);
        std::string note =
            fmt::format("{} pinned, a buffer of {} for the rest",
                        counted(pinning.count(), "tensor"), format_bytes(pinning.buffer()));
        LowerOptions options;
        options.load_limit = limit.bytes();
        // The first one has all tries, those with fewer pinned tensors one each.
        if (first_note.empty()) {
          first_note = note;
        } else {
          options.attempts = 1;
        }
        if (pinning.taken() > limit.bytes()) break;
        Trial trial = place(context.lowering(), stream_unpinned(lowering, pinning, algorithms),
                            context.budget(), options);
        if (trial.lowered) return PlannerOutput{std::move(*trial.lowered), {std::move(note)}};
        if (context.stopped()) break;
        limit.tighten(trial.needed > 0 ? trial.excess(context.budget()) : 0);
      }
    } while (!context.stopped() && limit.begin_small_steps());
    if (context.stopped()) return fail(ErrorCode::interrupted, "interrupted while planning");
    return cannot_train(context, first_note + ", which does not fit", "GeePS");
  }

 private:
  static constexpr Bytes kSteps = 50;  // of the budget, by which the limit goes down
};

}  // namespace

std::unique_ptr<Planner> make_geeps() { return std::make_unique<Geeps>(); }

PlannerInfo geeps_planner() {
  return {
      .name = "geeps",
      .description = "pins what fits beside a double buffer that the rest streams through (GeePS)",
      .make = make_geeps};
}

}  // namespace tidepool
