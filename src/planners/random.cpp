#include "planners/random.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "base/random.h"

namespace tidepool {
namespace {

std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }

class RandomPlanner : public Planner {
 public:
  Result<PlannerOutput> plan(Workload&, Lowering& lowering, const Budget& budget,
                             const PlannerOptions& options) override {
    const auto algorithms = choose_algorithms(lowering.program(), options.algorithms);
    Bytes limit = budget.device;
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      if (options.stop.requested()) {
        return fail(ErrorCode::interrupted, "interrupted while planning");
      }
      // Small budgets leave no room to copy in ahead; and where the load fits but its addresses do
      // not, there must be some for holes.
      LowerOptions as_drawn;
      as_drawn.allow_streaming = false;
      as_drawn.prefetch = attempt % 2 == 0;
      PlannerOutput output;
      output.strategy =
          draw(lowering, lowering.everything_away(algorithms), {limit, as_drawn.prefetch},
               hash_combine(options.seed, static_cast<std::uint64_t>(attempt)));
      auto lowered = lowering.lower(output.strategy, budget, as_drawn);
      if (lowered) {
        output.notes.push_back(count(lowering.index(), output.strategy));
        output.lowered = std::move(*lowered);
        return output;
      }
      if (!as_drawn.prefetch) limit -= limit / kShrink;
    }
    // Whatever fits at all fits like this; an error names the smallest feasible budget.
    auto lowered =
        lowering.lower(keep_everything(lowering.program(), lowering.index(), algorithms), budget);
    if (!lowered) return fail(lowered.error());
    PlannerOutput output;
    output.strategy = lowered->strategy;
    output.lowered = std::move(*lowered);
    return output;
  }

 private:
  static constexpr int kAttempts = 8;
  static constexpr Bytes kShrink = 25;      // of the limit, after a packing that did not fit
  static constexpr int kMostTrials = 4000;  // evaluations: about a second on large programs

  /// From everything away to a random mixture, one gap at a time, as long as it can be timed.
  static Strategy draw(Lowering& lowering, Strategy strategy, const EvaluateOptions& timing,
                       std::uint64_t seed) {
    Random random(seed);
    const auto gaps = lowering.index().gaps();
    strategy.planner = "random";
    std::vector<GapId> order(gaps.size());
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random);
    std::vector<Decision> before;  // of the tensor's gaps
    int trials = 0;
    for (const GapId g : order) {
      if (gaps[at(g)].kind != GapKind::device) continue;
      constexpr Decision kAll[] = {Decision::keep, Decision::swap, Decision::drop,
                                   Decision::recompute};
      const Decision chosen = kAll[random.below(4)];
      if (strategy.gaps[at(g)] == chosen) continue;
      const auto first = static_cast<std::size_t>(lowering.index().first_gap(gaps[at(g)].tensor));
      const std::size_t end = first + lowering.index().gaps(gaps[at(g)].tensor).size();
      before.assign(strategy.gaps.begin() + static_cast<std::ptrdiff_t>(first),
                    strategy.gaps.begin() + static_cast<std::ptrdiff_t>(end));
      strategy.gaps[at(g)] = chosen;
      // What was dropped because this gap left a copy on the host is copied out itself.
      for (std::size_t next = at(g) + 1; chosen != Decision::swap && next < end; ++next) {
        if (strategy.gaps[next] == Decision::drop) {
          strategy.gaps[next] = Decision::swap;
          break;
        }
      }
      if (++trials > kMostTrials || !lowering.evaluator().evaluate(strategy, timing).feasible) {
        std::copy(before.begin(), before.end(),
                  strategy.gaps.begin() + static_cast<std::ptrdiff_t>(first));
      }
    }
    return strategy;
  }

  static std::string count(const AccessIndex& index, const Strategy& strategy) {
    std::array<int, 4> counts{};
    for (std::size_t g = 0; g < strategy.gaps.size(); ++g) {
      if (index.gaps()[g].kind != GapKind::device) continue;
      ++counts[static_cast<std::size_t>(strategy.gaps[g])];
    }
    return fmt::format("gaps: {} kept, {} swapped, {} dropped, {} recomputed", counts[0], counts[1],
                       counts[2], counts[3]);
  }
};

}  // namespace

std::unique_ptr<Planner> make_random() { return std::make_unique<RandomPlanner>(); }

}  // namespace tidepool
