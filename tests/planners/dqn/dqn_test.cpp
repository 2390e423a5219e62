#include "planners/dqn/dqn.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/load_profile.h"
#include "planners/dqn/table_network.h"
#include "support/random_program.h"
#include "support/swap_programs.h"

namespace tidepool {
namespace {

Result<Planned> plan(const Program& program, const Machine& machine, double share,
                     const PlannerOptions& options) {
  FixedWorkload workload(program);
  const AccessIndex index(program);
  const Bytes peak =
      load_profile(program, index, machine.alignment(), least_workspace_algorithms(program)).peak;
  return make_plan(*make_dqn(DqnMode::swap_and_recompute, testing::make_table_network), workload,
                   machine, {static_cast<Bytes>(share * static_cast<double>(peak)), 0}, options);
}

TEST(Dqn, PlansASmallProgram) {
  PlannerOptions options;
  options.q_learning.episodes = 20;
  const auto planned = plan(testing::large_program(1), testing::random_machine(101), 0.7, options);
  ASSERT_TRUE(planned) << planned.error().message;
  ASSERT_NE(planned->learning, nullptr);
  EXPECT_EQ(planned->learning->episodes.size(), 20U);
  for (const auto& e : planned->learning->episodes) {
    printf("%ld %f %f %f %d %d\n", e.steps, e.episode_return, e.overhead, e.best, e.feasible,
           e.greedy);
  }
  for (const auto& n : planned->notes) printf("%s\n", n.c_str());
}

}  // namespace
}  // namespace tidepool
