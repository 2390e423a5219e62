#include "planners/published/memonger.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/at.h"
#include "base/counted.h"
#include "base/quantity.h"
#include "ir/load_profile.h"
#include "planners/registry.h"
#include "planners/toolkit/feature_maps.h"
#include "planners/toolkit/published_output.h"
#include "planners/toolkit/recomputation.h"

namespace tidepool {
namespace {

/// Blocks of one program. See Note [memonger].
class Blocks {
 public:
  Blocks(Lowering& lowering, std::vector<std::int32_t> algorithms)
      : lowering_(lowering),
        program_(lowering.program()),
        index_(lowering.index()),
        algorithms_(std::move(algorithms)),
        passes_(program_,
                load_profile(program_, index_, lowering.machine().alignment(), algorithms_).at_op),
        maps_(feature_maps(program_, index_, passes_)),
        cut_at_(program_.ops.size(), kNone),
        made_(program_.ops.size(), 0) {
    for (std::size_t i = 0; i < program_.ops.size(); ++i) {
      if (!is_forward(static_cast<OpId>(i))) continue;
      for (const Access& a : program_.ops[i].accesses) {
        if (a.mode == AccessMode::write) made_[i] += program_.tensors[at(a.tensor)].bytes;
      }
    }
    find_cuts();
  }

  struct Cut {
    Strategy strategy;
    Bytes saved = 0;    ///< of the values that are kept
    Bytes largest = 0;  ///< block
    std::size_t cuts = 0;
    Bytes peak = 0;
  };

  Cut cut(Bytes threshold) {
    Cut result;
    StrategyBuilder builder(program_, index_, algorithms_);
    for (const FeatureMap& map : maps_) {
      if (program_.ops[at(map.maker)].place == OpPlace::device) builder.recompute(map.gap);
    }
    Bytes block = 0;
    for (std::size_t i = 0; i < program_.ops.size(); ++i) {
      block += made_[i];
      result.largest = std::max(result.largest, block);
      const GapId kept = cut_at_[i];
      if (kept == kNone || block <= threshold) continue;
      builder.keep(kept);
      result.saved += program_.tensors[at(index_.gaps()[at(kept)].tensor)].bytes;
      ++result.cuts;
      block = 0;
    }
    take_back_impossible(program_, index_, false, builder);
    result.strategy = builder.strategy();
    const Evaluation evaluation =
        lowering_.evaluator().evaluate(result.strategy, {.load_limit = kNoDeviceLimit});
    result.peak = evaluation.feasible ? evaluation.peak_load : kNoDeviceLimit;
    return result;
  }

 private:
  [[nodiscard]] bool is_forward(OpId op) const {
    return program_.ops[at(op)].place == OpPlace::device && passes_.phase_of(op) == Phase::forward;
  }

  /// Where one value alone is made before and read by forward behind, and is a feature map.
  void find_cuts() {
    const std::size_t n = program_.ops.size();
    std::vector<std::int32_t> count(n + 1, 0);
    std::vector<std::int32_t> sum(n + 1, 0);  // of the values' numbers
    std::vector<GapId> gap_of{kNone};
    for (TensorId t = 0; t < static_cast<TensorId>(program_.tensors.size()); ++t) {
      if (program_.tensors[at(t)].persistent) continue;
      OpId maker = kNone;
      OpId last = kNone;
      const auto end_value = [&](GapId waiting) {
        if (maker == kNone || last == kNone) return;
        const auto number = static_cast<std::int32_t>(gap_of.size());
        gap_of.push_back(waiting);
        count[at(maker)] += 1;
        count[at(last)] -= 1;
        sum[at(maker)] += number;
        sum[at(last)] -= number;
      };
      GapId waiting = kNone;
      for (const TensorAccess& a : index_.accesses(t)) {
        if (a.version_read != kNone && is_forward(a.op)) last = a.op;
        if (a.version_written != kNone) {
          end_value(waiting);
          maker = is_forward(a.op) ? a.op : OpId{kNone};
          last = kNone;
          waiting = kNone;
        }
        if (const GapId map = map_behind(t, a.op); map != kNone) waiting = map;
      }
      end_value(waiting);
    }
    std::int32_t values = 0;
    std::int32_t numbers = 0;
    for (std::size_t i = 0; i < n; ++i) {
      values += count[i];
      numbers += sum[i];
      if (values == 1 && is_forward(static_cast<OpId>(i))) cut_at_[i] = gap_of[at(numbers)];
    }
  }

  /// The tensor's feature map whose gap begins at this op.
  [[nodiscard]] GapId map_behind(TensorId t, OpId op) const {
    const auto found = std::partition_point(maps_.begin(), maps_.end(), [&](const FeatureMap& map) {
      const Gap& gap = index_.gaps()[at(map.gap)];
      return gap.tensor < t || (gap.tensor == t && gap.from < op);
    });
    if (found == maps_.end()) return kNone;
    const Gap& gap = index_.gaps()[at(found->gap)];
    return gap.tensor == t && gap.from == op ? found->gap : GapId{kNone};
  }

  Lowering& lowering_;
  const Program& program_;
  const AccessIndex& index_;
  std::vector<std::int32_t> algorithms_;
  LayerPasses passes_;
  std::vector<FeatureMap> maps_;
  std::vector<GapId> cut_at_;  ///< per op: what is kept if forward is cut behind it, or kNone
  std::vector<Bytes> made_;    ///< per op: by forward ops
};

class Memonger : public Planner {
 public:
  [[nodiscard]] std::string_view name() const override { return "memonger"; }

  Result<PlannerOutput> plan(PlannerContext& context) override {
    if (!context.options().may.recompute) return PlannerOutput{context.everything_kept(), {}};
    Lowering& lowering = context.lowering();
    Blocks blocks(lowering, context.algorithms(lowering.program()));
    const Blocks::Cut best = search(blocks, context);
    return published_output(
        context, best.strategy,
        fmt::format("{} kept ({}), largest block {}", counted(best.cuts, "value"),
                    format_bytes(best.saved), format_bytes(best.largest)),
        "memonger");
  }

 private:
  static constexpr int kGuesses = 3;
  static constexpr int kSteps = 6;

  static Blocks::Cut search(Blocks& blocks, const PlannerContext& context) {
    Bytes threshold = 0;
    Bytes smallest = kNoDeviceLimit;
    Blocks::Cut best;
    best.peak = kNoDeviceLimit + 1;
    const auto attempt = [&](Bytes at_most) {
      Blocks::Cut next = blocks.cut(at_most);
      smallest = std::min(smallest, next.largest);
      const Bytes guess = static_cast<Bytes>(
          std::sqrt(static_cast<double>(next.saved) * static_cast<double>(next.largest) / 2));
      if (next.peak < best.peak) best = std::move(next);
      return guess;
    };
    for (int i = 0; i < kGuesses && (i == 0 || !context.stopped()); ++i) {
      threshold = attempt(threshold);
    }
    const auto most = static_cast<Bytes>(static_cast<double>(threshold) * std::numbers::sqrt2);
    const Bytes step = (most - smallest) / kSteps;
    for (int i = 1; step > 0 && i <= kSteps && !context.stopped(); ++i) {
      attempt(smallest + i * step);
    }
    return best;
  }
};

}  // namespace

std::unique_ptr<Planner> make_memonger() { return std::make_unique<Memonger>(); }

PlannerInfo memonger_planner() {
  return {
      .name = "memonger",
      .description = "keeps a value for each block of forward and recomputes the rest (Chen 2016)",
      .make = make_memonger};
}

}  // namespace tidepool
