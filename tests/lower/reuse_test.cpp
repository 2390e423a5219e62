// Evaluators are reused for thousands of strategies: nothing of one may be left in the next.
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/json.h"
#include "lower/lower.h"
#include "lower/plan_file.h"
#include "support/odd_program.h"
#include "support/random_program.h"
#include "support/same_evaluation.h"
#include "support/sanitized.h"

namespace tidepool {
namespace {

/// Decisions drawn without asking whether they go together: many such strategies are refused, some
/// midway through a recomputation.
Strategy careless_strategy(const Program& program, const AccessIndex& index, Random& random) {
  Strategy s = keep_everything(program, index, {});
  for (const Op& op : program.ops) {
    s.algorithms.push_back(static_cast<std::int32_t>(random.below(op.algorithms.size())));
  }
  const double density = random.uniform();
  const auto ops = static_cast<std::uint64_t>(program.ops.size());
  for (std::size_t g = 0; g < s.gaps.size(); ++g) {
    if (index.gaps()[g].kind != GapKind::device || random.uniform() >= density) continue;
    s.gaps[g] = static_cast<Decision>(random.below(4));
    if (random.below(16) != 0) continue;
    CopyHint hint;
    hint.gap = static_cast<GapId>(g);
    hint.in_trigger = static_cast<OpId>(random.below(ops));
    hint.in_barrier = static_cast<OpId>(random.below(ops));
    s.hints.push_back(hint);
  }
  return s;
}

Strategy draw_strategy(const Program& program, const AccessIndex& index, Random& random) {
  if (random.below(2) == 0) return careless_strategy(program, index, random);
  const std::uint64_t seed = random();
  Strategy s = testing::random_strategy(program, index, random.uniform(), seed);
  if (random.below(2) == 0) testing::add_random_hints(program, index, random.uniform(), seed, s);
  return s;
}

EvaluateOptions draw_options(Bytes least, Bytes peak, Random& random) {
  EvaluateOptions options;
  const double share = random.uniform() * 1.2 - 0.1;  // some limits are too small
  options.load_limit = least + static_cast<Bytes>(share * static_cast<double>(peak - least));
  options.prefetch = random.below(4) != 0;
  if (random.below(3) == 0) options.lead = Nanos{static_cast<Nanos::rep>(random.below(200'000))};
  if (random.below(3) == 0) {
    options.give_up_above = Nanos{static_cast<Nanos::rep>(random.below(2'000'000))};
  }
  return options;
}

// Temporaries of a strategy that was refused midway through a recomputation stayed, and the next
// strategy computed from them.
TEST(Reuse, AUsedEvaluatorSaysWhatAFreshOneSaysAfterAnySequenceOfStrategies) {
  int feasible = 0;
  int refused = 0;
  int given_up = 0;
  for (std::uint64_t seed = 0; seed < testing::usual_or(300U, 40U); ++seed) {
    // In odd ones an op may compute at once, before anything was fed.
    const Program program = seed % 5 == 0 ? testing::random_program(seed)
                                          : testing::odd_program(seed, testing::HostUse::plain);
    const AccessIndex index(program);
    const Machine machine = testing::random_machine(seed);
    Random random(seed);
    const Bytes least = smallest_budget(program, machine.alignment()).bytes;
    const Bytes peak =
        load_profile(program, index, machine.alignment(), fastest_algorithms(program)).peak;
    Evaluator used(program, index, machine);
    for (int i = 0; i < 20; ++i) {
      SCOPED_TRACE(::testing::Message() << "seed " << seed << " strategy " << i);
      const Strategy strategy = draw_strategy(program, index, random);
      const EvaluateOptions options = draw_options(least, peak, random);
      Evaluator fresh(program, index, machine);
      const Evaluation a = used.evaluate(strategy, options);
      const Evaluation b = fresh.evaluate(strategy, options);
      testing::expect_same(a, used, b, fresh);
      if (::testing::Test::HasFailure()) return;
      feasible += b.feasible ? 1 : 0;
      refused += b.refused.empty() ? 0 : 1;
      given_up += !b.feasible && b.refused.empty() ? 1 : 0;
    }
  }
  // All three happen often, or the test says little.
  EXPECT_GT(feasible, 300);
  EXPECT_GT(refused, testing::usual_or(300, 40));
  EXPECT_GT(given_up, testing::usual_or(300, 40));
}

TEST(Reuse, AUsedLoweringMakesThePlanThatAFreshOneMakes) {
  for (std::uint64_t seed = 0; seed < testing::usual_or(8U, 2U); ++seed) {
    const Program program = testing::random_program(seed);
    const Machine machine = testing::random_machine(seed);
    Random random(seed);
    const Bytes least = smallest_budget(program, machine.alignment()).bytes;
    Lowering used(program, machine);
    for (int i = 0; i < 10; ++i) {
      SCOPED_TRACE(::testing::Message() << "seed " << seed << " strategy " << i);
      const Strategy strategy = draw_strategy(program, used.index(), random);
      Budget budget;
      budget.device = least + static_cast<Bytes>(random.below(static_cast<std::uint64_t>(least)));
      if (random.below(4) == 0) budget.host = least;
      Lowering fresh(program, machine);
      const auto a = used.lower(strategy, budget);
      const auto b = fresh.lower(strategy, budget);
      ASSERT_EQ(a.has_value(), b.has_value());
      if (!a) {
        EXPECT_EQ(a.error().message, b.error().message);
        continue;
      }
      EXPECT_EQ(a->iteration_time, b->iteration_time);
      EXPECT_EQ(to_json(PlanFile{"", program, machine, 0, 0, {}, {}, a->strategy, a->plan}),
                to_json(PlanFile{"", program, machine, 0, 0, {}, {}, b->strategy, b->plan}));
    }
  }
}

/// Decision by decision, as planners try them: what is refused is taken back. A refusal then comes
/// late, when much was recomputed for the op already.
TEST(Reuse, AfterARefusalLateInARecomputationTheNextStrategyIsReadRight) {
  const auto text = read_file(TIDEPOOL_SOURCE_FOLDER "/tests/regress/stale_temporary.profile.json");
  ASSERT_TRUE(text) << text.error().message;
  const auto profile = read_profile(*text, "stale_temporary.profile.json");
  ASSERT_TRUE(profile) << profile.error().message;
  const Program& program = profile->program;
  const AccessIndex index(program);
  Evaluator used(program, index, profile->machine);
  int refused = 0;
  for (std::uint64_t seed = 0; seed < testing::usual_or(100U, 25U); ++seed) {
    Random random(seed);
    Strategy strategy = keep_everything(program, index, least_workspace_algorithms(program));
    for (std::size_t g = 0; g < strategy.gaps.size(); ++g) {
      if (index.gaps()[g].kind != GapKind::device) continue;
      constexpr Decision kTried[] = {Decision::recompute, Decision::drop, Decision::swap};
      const Decision before = strategy.gaps[g];
      for (int tries = 0; tries < 2; ++tries) {
        strategy.gaps[g] = kTried[random.below(3)];
        SCOPED_TRACE(::testing::Message() << "seed " << seed << " gap " << g);
        Evaluator fresh(program, index, profile->machine);
        const Evaluation a = used.evaluate(strategy, {Bytes{1} << 30});
        const Evaluation b = fresh.evaluate(strategy, {Bytes{1} << 30});
        testing::expect_same(a, used, b, fresh);
        if (::testing::Test::HasFailure()) return;
        if (b.refused.empty()) break;
        ++refused;
        strategy.gaps[g] = before;
      }
    }
  }
  EXPECT_GT(refused, 500);
}

}  // namespace
}  // namespace tidepool
