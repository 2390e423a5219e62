// Plans over a device, its host and a file behind it: proof, simulator and fake device agree, and
// values are right at any speed.
#include "support/three_tiers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/at.h"
#include "check/check.h"
#include "runtime/executor.h"
#include "schedule/plan_totals.h"
#include "sim/simulate.h"
#include "support/attacks.h"
#include "support/fake_device.h"
#include "support/run_plan.h"
#include "support/sanitized.h"
#include "support/tag_runner.h"

namespace tidepool {
namespace {

using testing::random_three_tiers;
using testing::SpacedPlan;
using testing::TagRunner;

FakeScript speeds_of(const SpacedPlan& p) {
  FakeScript script;
  script.op_time = [&p](const WorkLabel& label) {
    return label.op < 0 ? Nanos{0}
                        : p.program.ops[at(label.op)].algorithms[at(label.algorithm)].time;
  };
  script.copy_time = [&p](CopyRoute route, Bytes bytes) {
    return p.machine.find_link(route.from, route.to)->speed.time(bytes);
  };
  return script;
}

class ThreeTiersAtRun : public ::testing::TestWithParam<int> {
 protected:
  static std::uint64_t seed_of(int i) { return static_cast<std::uint64_t>(GetParam() * 1000 + i); }
};

TEST_P(ThreeTiersAtRun, SimulatorAndFakeDeviceAgreeToTheNanosecond) {
  for (int i = 0; i < testing::some(testing::usual_or(6, 4), 12); ++i) {
    SCOPED_TRACE(seed_of(i));
    const auto t = random_three_tiers(seed_of(i));
    if (!t) continue;
    const SpacedPlan& p = t->whole;
    const auto proof = check(p.program, p.plan, p.limits);
    ASSERT_TRUE(proof) << proof.error().message;
    constexpr int kIterations = 4;
    const Simulation simulation = simulate(p.program, p.plan, p.machine, kIterations);
    FakeDevice device(speeds_of(p));
    TagRunner runner(p.program);
    Executor executor(p.program, p.plan, device, runner);
    executor.run(kIterations);
    std::size_t next = 0;
    for (std::size_t it = 0; it < kIterations; ++it) {
      for (std::size_t s = 0; s < p.plan.steady.instructions.size(); ++s, ++next) {
        const FakeRecord& record = device.records()[next];
        ASSERT_EQ((Span{record.start, record.end}), simulation.iterations[it][s]);
      }
    }
    EXPECT_THAT(device.races(), ::testing::IsEmpty());
  }
}

TEST_P(ThreeTiersAtRun, ValuesAreThoseOfTheProgramAtAnySpeed) {
  for (int i = 0; i < testing::some(testing::usual_or(4, 3), 8); ++i) {
    const std::uint64_t seed = seed_of(i);
    SCOPED_TRACE(seed);
    const auto t = random_three_tiers(seed);
    if (!t) continue;
    const SpacedPlan& p = t->whole;
    constexpr std::int64_t kIterations = 4;
    TagRunner meaning(p.program);
    testing::run_in_order(p.program, chosen_algorithms(p.program, p.plan), kIterations, meaning);
    for (std::uint64_t speed = 0; speed < 6; ++speed) {
      const auto outcome =
          testing::run_at_random_speed(p.program, p.plan, meaning, kIterations, seed * 31 + speed);
      EXPECT_TRUE(outcome.values_right);
      EXPECT_EQ(outcome.races, 0u);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, ThreeTiersAtRun, ::testing::Range(0, 4));

}  // namespace
}  // namespace tidepool
