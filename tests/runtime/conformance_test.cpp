// One suite for evaluator, simulator and runtime: random programs under random strategies and
// budgets. Times agree to the nanosecond, values with the program's own meaning, at any speed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "check/check.h"
#include "runtime/executor.h"
#include "sim/simulate.h"
#include "support/attacks.h"
#include "support/fake_device.h"
#include "support/random_plan.h"
#include "support/sanitized.h"
#include "support/tag_runner.h"

namespace tidepool {
namespace {

using testing::random_guards;
using testing::random_plan;
using testing::RandomPlan;
using testing::run_in_order;
using testing::TagRunner;

FakeScript planned_speeds(const RandomPlan& c) {
  FakeScript script;
  script.op_time = [&c](const WorkLabel& label) {
    if (label.op < 0) return Nanos{0};
    return c.program.ops[static_cast<std::size_t>(label.op)]
        .algorithms[static_cast<std::size_t>(label.algorithm)]
        .time;
  };
  script.copy_time = [&c](CopyRoute direction, Bytes bytes) {
    return c.machine.find_link(direction.from, direction.to)->speed.time(bytes);
  };
  return script;
}

/// Of seed and machine: with a file, or without.
class Conformance : public ::testing::TestWithParam<std::tuple<int, bool>> {
 protected:
  static std::uint64_t seed_of(int i) {
    return static_cast<std::uint64_t>(std::get<0>(GetParam()) * 1000 + i);
  }
  static bool with_file() { return std::get<1>(GetParam()); }
  static std::optional<RandomPlan> draw(std::uint64_t seed) {
    return random_plan(seed, {}, with_file());
  }
};

TEST_P(Conformance, EvaluatorSimulatorAndFakeDeviceAgreeToTheNanosecond) {
  for (int i = 0; i < testing::some(15, 50); ++i) {
    const std::uint64_t seed = seed_of(i);
    SCOPED_TRACE(seed);
    auto drawn = draw(seed);
    ASSERT_TRUE(drawn);
    const RandomPlan& c = *drawn;
    ASSERT_LE(c.lowered.plan.device_bytes(), c.budget.device);
    const auto proof = check(c.program, c.lowered.plan, check_limits(c.machine, c.budget));
    ASSERT_TRUE(proof) << proof.error().message;

    constexpr int kIterations = 28;
    const Simulation simulation = simulate(c.program, c.lowered.plan, c.machine, kIterations);
    EXPECT_EQ(simulation.iteration_time, c.lowered.iteration_time);
    const Nanos base = simulation.iteration_end[kIterations - 2];
    for (std::size_t s = 0; s < c.lowered.steps.size(); ++s) {
      EXPECT_EQ(simulation.iterations.back()[s].start - base, c.lowered.steps[s].start);
      EXPECT_EQ(simulation.iterations.back()[s].end - base, c.lowered.steps[s].end);
    }

    // In half of the cases guards skip ops; both must shift everything behind alike.
    const std::uint64_t guard_seed = seed % 2 == 0 ? 0 : seed;
    const Simulation guarded =
        simulate(c.program, c.lowered.plan, c.machine, 4, [&](std::int64_t iteration) {
          return guard_seed == 0 ? ~0U : random_guards(guard_seed, iteration);
        });
    FakeDevice device(planned_speeds(c));
    TagRunner runner(c.program, guard_seed);
    Executor executor(c.program, c.lowered.plan, device, runner);
    constexpr int kFakeIterations = 4;
    const RunReport report = executor.run(kFakeIterations);
    std::size_t next = 0;
    for (int it = 0; it < kFakeIterations; ++it) {
      const std::uint32_t guards = runner.guards(it);
      for (std::size_t s = 0; s < c.lowered.steps.size(); ++s) {
        const std::int32_t guard = c.lowered.plan.steady.instructions[s].guard;
        if (guard != kNone && (guards >> guard & 1U) == 0) continue;
        ASSERT_LT(next, device.records().size());
        const FakeRecord& record = device.records()[next++];
        const Span span{record.start, record.end};
        ASSERT_EQ(span, guarded.iterations[static_cast<std::size_t>(it)][s]);
      }
    }
    EXPECT_EQ(next, device.records().size());
    EXPECT_EQ(report.iterations, kFakeIterations);
    EXPECT_THAT(device.races(), ::testing::IsEmpty());
    EXPECT_LE(executor.arena_peak(), c.budget.device);
  }
}

TEST_P(Conformance, ValuesAreThoseOfTheProgramAtAnySpeed) {
  for (int i = 0; i < testing::some(testing::usual_or(8, 5), 20); ++i) {
    const std::uint64_t seed = seed_of(i);
    SCOPED_TRACE(seed);
    auto drawn = draw(seed);
    ASSERT_TRUE(drawn);
    const RandomPlan& c = *drawn;
    constexpr int kIterations = 4;
    const std::uint64_t guard_seed = seed % 3;
    TagRunner meaning(c.program, guard_seed);
    run_in_order(c.program, c.lowered.strategy.algorithms, kIterations, meaning);
    for (std::uint64_t speed = 0; speed < testing::some<std::uint64_t>(6, 10); ++speed) {
      Random random(seed * 31 + speed);
      FakeScript script;
      script.op_time = [&](const WorkLabel&) {
        return Nanos{static_cast<Nanos::rep>(random.below(9000))};
      };
      script.copy_time = [&](CopyRoute, Bytes) {
        return Nanos{static_cast<Nanos::rep>(random.below(random.below(4) == 0 ? 200'000 : 9000))};
      };
      FakeDevice device(script);
      TagRunner runner(c.program, guard_seed);
      Executor executor(c.program, c.lowered.plan, device, runner);
      executor.enter();
      executor.run(kIterations);
      executor.exit();
      EXPECT_THAT(device.races(), ::testing::IsEmpty());
      EXPECT_EQ(runner.seen(), meaning.seen());
      EXPECT_EQ(runner.final_values(), meaning.final_values());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, Conformance,
                         ::testing::Combine(::testing::Range(0, testing::kThreadSanitizer ? 4 : 8),
                                            ::testing::Bool()),
                         [](const auto& p) {
                           return std::to_string(std::get<0>(p.param)) +
                                  (std::get<1>(p.param) ? "_with_a_file" : "");
                         });

}  // namespace
}  // namespace tidepool
