// Plans made of scripts, with one device and with two, run at any speed.
#include <gtest/gtest.h>

#include "ir/load_profile.h"
#include "planners/published/modnn/modnn.h"
#include "planning/make_plan.h"
#include "schedule/plan_totals.h"
#include "sim/simulate.h"
#include "support/attacks.h"
#include "support/random_plan.h"
#include "support/run_plan.h"
#include "support/sanitized.h"
#include "support/script_of.h"
#include "support/spaces.h"

namespace tidepool {
namespace {

using testing::random_plan;
using testing::script_of;

std::uint64_t scripts() { return testing::some<std::uint64_t>(testing::usual_or(16, 8), 40); }

void expect_run_right(const Program& program, const Plan& plan, std::uint64_t seed) {
  constexpr std::int64_t kIterations = 4;
  testing::TagRunner meaning(program);
  testing::run_in_order(program, chosen_algorithms(program, plan), kIterations, meaning);
  for (std::uint64_t speed = 0; speed < 4; ++speed) {
    const auto outcome =
        testing::run_at_random_speed(program, plan, meaning, kIterations, seed * 31 + speed);
    EXPECT_TRUE(outcome.values_right);
    EXPECT_EQ(outcome.races, 0u);
  }
}

void expect_simulated_as_it_runs(const Program& program, const Plan& plan, const Machine& machine) {
  FakeScript speeds;
  speeds.op_time = [&](const WorkLabel& label) {
    if (label.op < 0) return Nanos{0};
    return program.ops[static_cast<std::size_t>(label.op)]
        .algorithms[static_cast<std::size_t>(label.algorithm)]
        .time;
  };
  speeds.copy_time = [&](CopyRoute route, Bytes bytes) {
    return machine.find_link(route.from, route.to)->speed.time(bytes);
  };
  constexpr int kIterations = 3;
  const Simulation simulation = simulate(program, plan, machine, kIterations);
  FakeDevice device(speeds);
  testing::TagRunner runner(program);
  Executor executor(program, plan, device, runner);
  executor.run(kIterations);
  std::size_t next = 0;
  for (const auto& iteration : simulation.iterations) {
    for (const Span& span : iteration) {
      const FakeRecord& record = device.records()[next++];
      ASSERT_EQ((Span{record.start, record.end}), span);
    }
  }
}

TEST(Scripts, OfOneDeviceRunRightAtAnySpeed) {
  for (std::uint64_t seed = 0; seed < scripts(); ++seed) {
    SCOPED_TRACE(seed);
    const auto c = random_plan(seed);
    ASSERT_TRUE(c);
    const auto plan = plan_of_script(c->program, script_of(c->lowered.plan));
    ASSERT_TRUE(plan) << plan.error().message;
    expect_run_right(c->program, *plan, seed);
    expect_simulated_as_it_runs(c->program, *plan, c->machine);
  }
}

TEST(Scripts, OfTwoDevicesRunRightAtAnySpeed) {
  for (std::uint64_t seed = 0; seed < scripts() / 2; ++seed) {
    SCOPED_TRACE(seed);
    auto a = random_plan(seed * 2);
    auto b = random_plan(seed * 2 + 1);
    ASSERT_TRUE(a && b);
    const testing::SpacedPlan p = testing::TwoDevices({a->program, a->lowered.plan, a->machine},
                                                      {b->program, b->lowered.plan, b->machine})
                                      .make();
    const auto plan = plan_of_script(p.program, script_of(p.plan));
    ASSERT_TRUE(plan) << plan.error().message;
    expect_run_right(p.program, *plan, seed);
    expect_simulated_as_it_runs(p.program, *plan, p.machine);
  }
}

// A planner that decides every address itself.
TEST(Scripts, OfModnnRunRightAtAnySpeed) {
  for (std::uint64_t seed = 0; seed < scripts(); ++seed) {
    SCOPED_TRACE(seed);
    const Program program = testing::random_program(seed);
    const Machine machine = testing::random_machine(seed);
    FixedWorkload workload(program);
    const Bytes least = smallest_budget(program, machine.alignment()).bytes;
    const auto planned = make_plan(*make_modnn(), workload, machine, {least * 5 / 4, 0}, {});
    ASSERT_TRUE(planned) << planned.error().message;
    expect_run_right(program, planned->lowered.plan, seed);
    expect_simulated_as_it_runs(program, planned->lowered.plan, machine);
  }
}

}  // namespace
}  // namespace tidepool
