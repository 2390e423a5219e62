// The conformance of conformance_test.cpp on programs no neural network would make.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "check/check.h"
#include "lower/lower.h"
#include "sim/simulate.h"
#include "support/odd_program.h"
#include "support/random_program.h"
#include "support/run_plan.h"

namespace tidepool {
namespace {

using testing::odd_program;
using testing::random_machine;
using testing::random_strategy;

using testing::HostUse;

class OddPrograms : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  static constexpr std::uint64_t kPrograms = 150;

  void plan_prove_simulate_and_run(HostUse host_use) {
    int failures = 0;
    for (std::uint64_t i = 0; i < kPrograms && failures < 5; ++i) {
      const std::uint64_t seed = GetParam() * kPrograms + i;
      SCOPED_TRACE(seed);
      if (!one(odd_program(seed, host_use), seed)) ++failures;
    }
  }

 private:
  static bool touches_persistent_on_host(const Program& program) {
    for (const Op& op : program.ops) {
      for (const Access& a : op.accesses) {
        const bool persistent = program.tensors[static_cast<std::size_t>(a.tensor)].persistent;
        if (persistent && op.place == OpPlace::host) return true;
      }
    }
    return false;
  }

  static bool one(const Program& program, std::uint64_t seed) {
    const auto valid = validate(program);
    EXPECT_TRUE(valid) << valid.error().message;
    const Machine machine = random_machine(seed);
    Lowering lowering(program, machine);
    Random random(seed);
    const Strategy strategy = random_strategy(program, lowering.index(), random.uniform(), seed);
    const Bytes least = std::max<Bytes>(1, smallest_budget(program, machine.alignment()).bytes);
    const Bytes peak =
        load_profile(program, lowering.index(), machine.alignment(), strategy.algorithms).peak;
    const double share = random.below(3) == 0 ? 0.0 : random.uniform() * 1.2;
    const Bytes budget =
        std::max(least, least + static_cast<Bytes>(share * static_cast<double>(peak - least)));
    const auto lowered = lowering.lower(strategy, {budget, 0});
    if (!lowered && lowered.error().code == ErrorCode::bad_input) {
      // The one thing that cannot be planned yet says so.
      EXPECT_NE(lowered.error().message.find("host ops on persistent tensors are not supported"),
                std::string::npos)
          << lowered.error().message;
      return touches_persistent_on_host(program);
    }
    EXPECT_TRUE(lowered) << lowered.error().message;
    if (!lowered) return false;
    const auto proof = check(program, lowered->plan, {budget, 0});
    EXPECT_TRUE(proof) << proof.error().message;
    if (!proof) return false;
    const Nanos simulated = simulate(program, lowered->plan, machine, 28).iteration_time;
    EXPECT_EQ(simulated, lowered->iteration_time);
    bool right = simulated == lowered->iteration_time;
    constexpr std::int64_t kIterations = 4;
    testing::TagRunner meaning(program);
    testing::run_in_order(program, lowered->strategy.algorithms, kIterations, meaning);
    for (std::uint64_t speed = 0; speed < 5; ++speed) {
      const auto outcome = testing::run_at_random_speed(program, lowered->plan, meaning,
                                                        kIterations, seed * 7 + speed);
      EXPECT_TRUE(outcome.values_right);
      EXPECT_EQ(outcome.races, 0u);
      right = right && outcome.values_right && outcome.races == 0;
    }
    return right;
  }
};

TEST_P(OddPrograms, OnTheDeviceOnlyArePlannedProvedSimulatedAndRunRight) {
  plan_prove_simulate_and_run(HostUse::none);
}

TEST_P(OddPrograms, WithHostOpsArePlannedProvedSimulatedAndRunRight) {
  plan_prove_simulate_and_run(HostUse::plain);
}

TEST_P(OddPrograms, WithPersistentStateThatHostOpsTouchAreRightOrRefused) {
  plan_prove_simulate_and_run(HostUse::persistent);
}

INSTANTIATE_TEST_SUITE_P(Seeds, OddPrograms, ::testing::Range<std::uint64_t>(0, 4));

}  // namespace
}  // namespace tidepool
