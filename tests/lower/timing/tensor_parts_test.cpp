// Searches change one decision after the other: what is kept from one strategy to the next must be
// what a fresh evaluator makes.
#include "lower/timing/tensor_parts.h"

#include <gtest/gtest.h>

#include "ir/load_profile.h"
#include "lower/evaluate.h"
#include "support/odd_program.h"
#include "support/random_program.h"
#include "support/same_evaluation.h"
#include "support/sanitized.h"

namespace tidepool {
namespace {

TEST(TensorParts, AfterOneChangedDecisionTheEvaluationIsThatOfAFreshEvaluator) {
  int feasible = 0;
  for (std::uint64_t seed = 0; seed < testing::usual_or<std::uint64_t>(120, 20); ++seed) {
    const Program program = seed % 3 == 0 ? testing::odd_program(seed, testing::HostUse::plain)
                                          : testing::random_program(seed);
    const AccessIndex index(program);
    const Machine machine = testing::random_machine(seed);
    Random random(seed);
    const auto algorithms = least_workspace_algorithms(program);
    const Bytes least = smallest_budget(program, machine.alignment()).bytes;
    const Bytes peak = load_profile(program, index, machine.alignment(), algorithms).peak;
    Evaluator used(program, index, machine);
    Strategy strategy = keep_everything(program, index, algorithms);
    for (int i = 0; i < 60; ++i) {
      SCOPED_TRACE(::testing::Message() << "seed " << seed << " change " << i);
      // Mostly one gap, with drops that follow; sometimes one that makes no sense, or many.
      const auto changes = random.below(10) == 0 ? strategy.gaps.size() : 1;
      for (std::size_t k = 0; k < changes && !strategy.gaps.empty(); ++k) {
        const auto g = random.below(strategy.gaps.size());
        const Gap& gap = index.gaps()[g];
        if (gap.kind != GapKind::device) continue;
        strategy.gaps[g] = strategy.gaps[g] == Decision::keep ? Decision::swap : Decision::keep;
        if (random.below(20) == 0) strategy.gaps[g] = static_cast<Decision>(random.below(4));
        if (random.below(10) != 0) derive_drops(index, gap.tensor, strategy.gaps);
      }
      if (random.below(10) == 0 && !program.ops.empty()) {
        const auto op = random.below(program.ops.size());
        strategy.algorithms[op] =
            static_cast<std::int32_t>(random.below(program.ops[op].algorithms.size()));
      }
      EvaluateOptions options;
      options.load_limit =
          least + static_cast<Bytes>(random.below(static_cast<std::uint64_t>(peak - least) + 1));
      if (random.below(3) == 0)
        options.lead = Nanos{static_cast<Nanos::rep>(random.below(200'000))};
      Evaluator fresh(program, index, machine);
      const Evaluation a = used.evaluate(strategy, options);
      const Evaluation b = fresh.evaluate(strategy, options);
      testing::expect_same(a, used, b, fresh);
      if (::testing::Test::HasFailure()) return;
      feasible += a.feasible ? 1 : 0;
    }
  }
  EXPECT_GT(feasible, testing::usual_or(1000, 100));
}

}  // namespace
}  // namespace tidepool
