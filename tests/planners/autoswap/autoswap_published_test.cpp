#include "planners/autoswap/autoswap_published.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "planners/autoswap/autoswap_load.h"
#include "planning/make_plan.h"
#include "support/sanitized.h"
#include "support/swap_programs.h"

namespace tidepool {
namespace {

using ::testing::HasSubstr;
using testing::large_program;
using testing::mib;
using testing::two_mib_a_ms;
using Example = testing::SwapExample;

Result<Planned> plan(const Program& program, const Machine& machine, Bytes budget,
                     const PlannerOptions& options = {}) {
  FixedWorkload workload(program);
  return make_plan(*make_autoswap_published(), workload, machine, {budget, 0}, options);
}

TEST(AutoSwapPublished, HonoursEveryBudgetFromTheSmallestFeasibleOne) {
  for (std::uint64_t seed = 0; seed < testing::usual_or(8U, 2U); ++seed) {
    SCOPED_TRACE(seed);
    const Program program = large_program(seed);
    const Machine machine = testing::random_machine(seed);
    const Bytes least = smallest_budget(program, machine.alignment()).bytes;
    for (const double factor : {1.0, 1.2, 1.5, 2.0, 3.0}) {
      const auto budget = static_cast<Bytes>(static_cast<double>(least) * factor);
      const auto planned = plan(program, machine, budget);
      ASSERT_TRUE(planned) << planned.error().message;
      EXPECT_LE(planned->lowered.plan.device_bytes(), budget);
      EXPECT_EQ(planned->lowered.plan.planner, "autoswap-published");
    }
    const auto refused = plan(program, machine, least - 1);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().smallest_feasible, least);
  }
}

/// Wherever addresses fit at once, the plan is that of the selection for the budget itself, and
/// every copy in has its time from the schedule, not from the timing engine.
TEST(AutoSwapPublished, PicksForTheLimitItselfAndTimesEveryCopyIn) {
  int at_the_limit = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    const Program program = large_program(seed);
    const Machine machine = testing::random_machine(seed);
    const Bytes budget = 2 * smallest_budget(program, machine.alignment()).bytes;
    const auto planned = plan(program, machine, budget);
    ASSERT_TRUE(planned);
    if (planned->lowered.streaming) continue;
    const Strategy& strategy = planned->lowered.strategy;
    std::size_t away = 0;
    for (const Decision d : strategy.gaps) {
      away += d != Decision::keep ? 1 : 0;
      EXPECT_NE(d, Decision::drop) << "the paper copies all that is picked";
    }
    ASSERT_EQ(strategy.hints.size(), away);
    for (const CopyHint& hint : strategy.hints) EXPECT_TRUE(hint.in_trigger);
    if (planned->lowered.load_limit != budget || away == 0) continue;
    Lowering lowering(program, machine);
    const SwapCandidates candidates(program, lowering.index(), machine,
                                    least_workspace_algorithms(program));
    const LoadedSelection expected =
        search_weights(lowering.evaluator(), candidates, budget, budget, published_search(1, {}));
    EXPECT_EQ(strategy.gaps, expected.selection.strategy.gaps);
    EXPECT_EQ(planned->lowered.iteration_time, expected.evaluation.iteration_time);
    ++at_the_limit;
  }
  EXPECT_GT(at_the_limit, 0);
}

TEST(AutoSwapPublished, WithEnoughMemoryNothingIsSwapped) {
  const Example e;
  const auto planned = plan(e.program, two_mib_a_ms(), std::numeric_limits<Bytes>::max() / 4);
  ASSERT_TRUE(planned);
  for (const Decision d : planned->lowered.strategy.gaps) EXPECT_EQ(d, Decision::keep);
}

TEST(AutoSwapPublished, SaysWhenTheBudgetIsBelowLoadMin) {
  const Example e;
  const auto planned = plan(e.program, two_mib_a_ms(), mib(65));
  ASSERT_TRUE(planned) << planned.error().message;
  EXPECT_THAT(planned->notes, ::testing::Contains(HasSubstr("load_min")));
}

/// Regression: it searched for each of a hundred limits, whatever the time limit.
TEST(AutoSwapPublished, WithNoTimeItStillGivesAPlan) {
  const Program program = large_program(4);
  const Machine machine = testing::random_machine(4);
  PlannerOptions options;
  options.time_limit = Nanos{0};
  const Bytes budget = smallest_budget(program, machine.alignment()).bytes * 3 / 2;
  const auto planned = plan(program, machine, budget, options);
  ASSERT_TRUE(planned) << planned.error().message;
  EXPECT_THAT(planned->notes, ::testing::Contains(HasSubstr("no selection fits")));
}

TEST(AutoSwapPublished, WhenCancelledItStillGivesAPlan) {
  const Program program = large_program(4);
  const Machine machine = testing::random_machine(4);
  const Bytes budget = smallest_budget(program, machine.alignment()).bytes * 3 / 2;
  for (const int allowed : {0, 1, 5, 60}) {
    SCOPED_TRACE(allowed);
    int asked = 0;
    PlannerOptions options;
    options.stop = [&] { return ++asked > allowed; };
    const auto planned = plan(program, machine, budget, options);
    ASSERT_TRUE(planned) << planned.error().message;
    EXPECT_LE(planned->lowered.plan.device_bytes(), budget);
    EXPECT_LE(asked, allowed + 10) << "it goes on after it was cancelled";
  }
}

}  // namespace
}  // namespace tidepool
