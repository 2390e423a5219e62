#include "lower/timing/time_pass.h"

#include <gtest/gtest.h>

#include "ir/load_profile.h"
#include "lower/lower.h"
#include "support/odd_program.h"
#include "support/program_builder.h"
#include "support/random_program.h"
#include "support/sanitized.h"

namespace tidepool {
namespace {

// A pass that ends as it began is not replayed: its period is the long run, whatever the start.
TEST(TimePass, ThePeriodIsThatOfAReplayFromIdleStreams) {
  int feasible = 0;
  for (std::uint64_t seed = 0; seed < testing::usual_or<std::uint64_t>(400, 60); ++seed) {
    const Program program = seed % 3 == 0 ? testing::odd_program(seed, testing::HostUse::plain)
                                          : testing::random_program(seed);
    const AccessIndex index(program);
    const Machine machine = testing::random_machine(seed);
    Random random(seed);
    const Bytes least = smallest_budget(program, machine.alignment()).bytes;
    Evaluator evaluator(program, index, machine);
    for (int i = 0; i < 5; ++i) {
      const Strategy strategy =
          testing::random_strategy(program, index, random.uniform(), random());
      const Bytes limit =
          least + static_cast<Bytes>(random.below(static_cast<std::uint64_t>(least) + 1));
      const Evaluation e = evaluator.evaluate(strategy, {limit});
      if (!e.feasible) continue;
      ++feasible;
      std::vector<Step> steps(evaluator.steps().begin(), evaluator.steps().end());
      ReplayScratch scratch;
      EXPECT_EQ(replay(steps, evaluator.streams().compute, scratch), e.iteration_time)
          << "seed " << seed << " strategy " << i;
    }
  }
  EXPECT_GT(feasible, testing::usual_or(500, 50));
}

// A stall can look longer while the list is made than it is in the long run: giving up on that
// refused strategies that are fast.
TEST(TimePass, GivesUpOnlyOnWhatIsSlower) {
  for (std::uint64_t seed = 0; seed < testing::usual_or<std::uint64_t>(200, 40); ++seed) {
    const Program program = testing::random_program(seed);
    const AccessIndex index(program);
    const Machine machine = testing::random_machine(seed);
    Evaluator evaluator(program, index, machine);
    const Strategy strategy = testing::random_strategy(program, index, 0.6, seed);
    const Bytes least = smallest_budget(program, machine.alignment()).bytes;
    EvaluateOptions options{least + least / 3};
    const Evaluation e = evaluator.evaluate(strategy, options);
    if (!e.feasible) continue;
    options.give_up_above = e.iteration_time;
    EXPECT_TRUE(evaluator.evaluate(strategy, options).feasible) << seed;
    options.give_up_above = e.iteration_time - Nanos{1};
    EXPECT_FALSE(evaluator.evaluate(strategy, options).feasible) << seed;
  }
}

// What may have one place at a time was copied in as early as it could be, and so never away.
TEST(TimePass, ATensorWithOnePlaceAtATimeStaysAwayWhileOthersNeedItsBytes) {
  constexpr Bytes kMany = 1 << 20;
  testing::ProgramBuilder b;
  const TensorId a = b.tensor("a", kMany);
  const TensorId other = b.tensor("other", kMany);
  constexpr Nanos kOp{1000};
  b.device("make a", {{a, AccessMode::write}}, kOp);
  b.device("make other", {{other, AccessMode::write}}, kOp);
  b.device("use other", {{other, AccessMode::read}}, kOp);
  b.device("use a", {{a, AccessMode::read}}, kOp);
  for (const bool single : {false, true}) {
    Program program = b.build();
    program.single_placements = single;
    Lowering lowering(program, testing::random_machine(1));
    const Strategy strategy = lowering.everything_away(least_workspace_algorithms(program));
    EXPECT_TRUE(lowering.lower(strategy, {kMany + 4096, 0})) << single;
  }
}

}  // namespace
}  // namespace tidepool
