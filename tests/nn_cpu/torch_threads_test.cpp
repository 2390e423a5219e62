#include <gtest/gtest.h>
#include <omp.h>

#include "ir/load_profile.h"
#include "planners/registry.h"
#include "planning/make_plan.h"
#include "support/random_program.h"
#include "support/swap_programs.h"

namespace tidepool {
namespace {

/// libtorch would set it for the thread that calls it, and the bits of a kernel depend on it.
TEST(TorchThreads, PlanningLeavesOpenMpsNumberAsItIs) {
  if (!learns("dqn")) GTEST_SKIP() << "this build has no libtorch";
  const Program program = testing::large_program(1);
  const Machine machine = testing::random_machine(101);
  const Bytes peak = load_profile(program, AccessIndex(program), machine.alignment(),
                                  least_workspace_algorithms(program))
                         .peak;
  PlannerOptions options;
  options.values.set("episodes", 3);
  for (const int threads : {3, 1, 2}) {
    omp_set_num_threads(threads);
    FixedWorkload workload(program);
    const auto planner = make_planner("dqn");
    ASSERT_TRUE(planner) << planner.error().message;
    const auto planned = make_plan(**planner, workload, machine, {peak * 7 / 10, 0}, options);
    ASSERT_TRUE(planned) << planned.error().message;
    ASSERT_NE(planned->learning, nullptr);
    EXPECT_EQ(omp_get_max_threads(), threads);
    int team = 0;
#pragma omp parallel
#pragma omp single
    team = omp_get_num_threads();
    EXPECT_EQ(team, threads);
  }
}

}  // namespace
}  // namespace tidepool
