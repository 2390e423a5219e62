#include "planners/tide/tide_load.h"

#include <gtest/gtest.h>

#include "bound/fluid.h"
#include "ir/load_profile.h"
#include "support/random_program.h"

namespace tidepool {
namespace {

LoadSearchOptions within(std::chrono::milliseconds time) {
  LoadSearchOptions options;
  options.deadline = std::chrono::steady_clock::now() + time;
  return options;
}

TEST(LoadSearch, IsNeverWorseThanWhatItIsGiven) {
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    SCOPED_TRACE(seed);
    const Program program = testing::random_program(seed);
    const Machine machine = testing::random_machine(seed);
    Lowering lowering(program, machine);
    const auto algorithms = least_workspace_algorithms(program);
    const Bytes limit = smallest_budget(program, machine.alignment()).bytes * 3 / 2;
    const Strategy away = lowering.everything_away(algorithms);
    for (const bool compact : {false, true}) {
      LoadSearch search(lowering, algorithms);
      const Evaluation given = lowering.evaluator().evaluate(away, {limit, true, search.lead()});
      if (!given.feasible) continue;
      search.add_seed(away);
      LoadSearchOptions options = within(std::chrono::milliseconds(100));
      options.compact = compact;
      ASSERT_TRUE(search.run(limit, options));
      EXPECT_LE(search.iteration_time(), given.iteration_time);
      EXPECT_GE(search.iteration_time(), search.compute_time());
    }
  }
}

TEST(TideLeastLoad, LiesBetweenTheFluidBoundAndThePeakAndStallsNoMoreThanItMay) {
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    SCOPED_TRACE(seed);
    const Program program = testing::random_program(seed);
    const Machine machine = testing::random_machine(seed);
    Lowering lowering(program, machine);
    const auto algorithms = least_workspace_algorithms(program);
    const FluidLoad fluid =
        fluid_least_load({program, lowering.index(), machine, algorithms}, Nanos{0});
    const Bytes peak =
        load_profile(program, lowering.index(), machine.alignment(), algorithms).peak;
    const TideLeastLoad least = tide_least_load(
        lowering, algorithms, {peak, keep_everything(program, lowering.index(), algorithms)}, 0.0,
        within(std::chrono::milliseconds(200)));
    EXPECT_GE(least.bytes, fluid.bytes);
    EXPECT_LE(least.bytes, peak);
    LoadSearch search(lowering, algorithms);
    const Evaluation e =
        lowering.evaluator().evaluate(least.strategy, {least.bytes, true, search.lead()});
    EXPECT_TRUE(e.feasible);
    // Uploads may stall whatever is kept.
    const Strategy kept = keep_everything(program, lowering.index(), algorithms);
    EXPECT_LE(e.stall(), lowering.evaluator().evaluate(kept, {peak, true, search.lead()}).stall());
  }
}

}  // namespace
}  // namespace tidepool
