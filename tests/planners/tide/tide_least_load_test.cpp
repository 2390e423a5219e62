#include "planners/tide/tide_least_load.h"

#include <gtest/gtest.h>

#include "bound/fluid.h"
#include "ir/load_profile.h"
#include "support/random_program.h"

namespace tidepool {
namespace {

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
    LoadSearchOptions searching;
    searching.allowance = Allowance::of(2000);
    const TideLeastLoad least = tide_least_load(
        lowering, algorithms, {peak, keep_everything(program, lowering.index(), algorithms)}, 0.0,
        searching);
    EXPECT_GE(least.bytes, fluid.bytes);
    EXPECT_LE(least.bytes, peak);
    LoadSearch search(lowering, algorithms);
    // By the search's own leads: the load that is known is its fastest.
    search.add_seed(least.strategy);
    LoadSearchOptions only_time_it;
    only_time_it.rounds = 0;
    ASSERT_TRUE(search.run(least.bytes, only_time_it));
    // Uploads may stall whatever is kept.
    const Strategy kept = keep_everything(program, lowering.index(), algorithms);
    EXPECT_LE(search.iteration_time() - search.compute_time(),
              lowering.evaluator().evaluate(kept, {peak}).stall());
  }
}

}  // namespace
}  // namespace tidepool
