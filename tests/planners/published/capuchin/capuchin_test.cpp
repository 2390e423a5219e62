#include "planners/published/capuchin/capuchin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <random>

#include "ir/load_profile.h"
#include "planners/published/capuchin/capuchin_program.h"
#include "planning/make_plan.h"
#include "support/random_program.h"
#include "support/sanitized.h"
#include "support/trains_in_less.h"

namespace tidepool {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using Chain = testing::CapuchinChain;

class Capuchin : public ::testing::Test {
 protected:
  [[nodiscard]] Planned plan(Bytes budget, std::span<const Observation> observations = {}) const {
    FixedWorkload workload(program_);
    PlannerOptions options;
    options.observations = observations;
    auto planned =
        make_plan(*make_capuchin(), workload, testing::byte_a_nanosecond(1), {budget, 0}, options);
    EXPECT_TRUE(planned) << planned.error().message;
    return std::move(*planned);
  }
  [[nodiscard]] OpId trigger(const Planned& planned, std::string_view tensor) const {
    const AccessIndex index(program_);
    for (const CopyHint& hint : planned.lowered.strategy.hints) {
      const Gap& gap = index.gaps()[static_cast<std::size_t>(hint.gap)];
      if (program_.tensors[static_cast<std::size_t>(gap.tensor)].name == tensor)
        return *hint.in_trigger;
    }
    return kNone;
  }

  /// As planned, but for a stall before an op: backward0 reads x0, backward1 x1.
  [[nodiscard]] Observation seen(const Planned& planned, Nanos stall,
                                 std::string_view before = "backward1") const {
    Observation seen;
    seen.strategy = planned.lowered.strategy;
    const auto& list = planned.lowered.plan.steady.instructions;
    seen.durations.assign(list.size(), Nanos{1000});
    seen.stalls.assign(list.size(), Nanos{0});
    for (std::size_t i = 0; i < list.size(); ++i) {
      const bool late = list[i].kind == InstructionKind::op &&
                        program_.ops[static_cast<std::size_t>(list[i].op)].name == before;
      if (late) seen.stalls[i] = stall;
    }
    return seen;
  }

  Program program_ = Chain::make();
};

TEST_F(Capuchin, WhatFitsIsKept) {
  const Planned planned = plan(7000);
  for (const Decision decision : planned.lowered.strategy.gaps) EXPECT_EQ(decision, Decision::keep);
}

TEST_F(Capuchin, HiddenSwapsCostNothing) {
  const Planned planned = plan(5500);
  EXPECT_FALSE(planned.lowered.streaming);
  EXPECT_LE(planned.lowered.iteration_time, plan(7000).lowered.iteration_time);
}

TEST_F(Capuchin, AnObservedStallMovesTheCopyInThatWasLate) {
  const Planned first = plan(4500);
  ASSERT_EQ(trigger(first, "x1"), Chain::kBackward2);
  const std::array observed{seen(first, Nanos{300})};
  const Planned second = plan(4500, observed);
  EXPECT_LT(trigger(second, "x1"), trigger(first, "x1"));
  EXPECT_EQ(first.lowered.strategy.gaps, second.lowered.strategy.gaps);
  EXPECT_THAT(second.notes, Contains(HasSubstr("1 copy in moved as observed")));
}

/// 50 ns are a step of 5 % of what copying x1 takes.
TEST_F(Capuchin, AStallOfLessThanAStepIsNone) {
  const Planned first = plan(4500);
  const std::array observed{seen(first, Nanos{49})};
  EXPECT_TRUE(decide_the_same(plan(4500, observed).lowered.strategy, first.lowered.strategy));
}

/// What a launch takes on a device is no wait for a copy.
TEST_F(Capuchin, WhatTheDeviceIsIdleBetweenAllOpsIsNoStall) {
  const Planned first = plan(4500);
  std::array observed{seen(first, Nanos{0})};
  observed[0].stalls.assign(observed[0].stalls.size(), Nanos{300});
  EXPECT_TRUE(decide_the_same(plan(4500, observed).lowered.strategy, first.lowered.strategy));
}

TEST_F(Capuchin, StallsCountInTheTimesOfTheProfile) {
  const Planned first = plan(5500);
  ASSERT_GT(trigger(first, "x0"), Chain::kBackward2);
  std::array observed{seen(first, Nanos{300}, "backward0")};
  EXPECT_EQ(trigger(plan(5500, observed), "x0"), Chain::kBackward2);
  // Ops took a tenth of the profile's times: 300 ns are then as long as three of its ops.
  observed[0].durations.assign(observed[0].durations.size(), Nanos{100});
  EXPECT_EQ(trigger(plan(5500, observed), "x0"), Chain::kBackward3) << "no room before";
}

TEST_F(Capuchin, EachObservationIsOfThePlanThatTheOnesBeforeItMade) {
  const Planned first = plan(5500);
  std::vector<Observation> observed{seen(first, Nanos{300}, "backward0")};
  const Planned second = plan(5500, observed);
  ASSERT_LT(trigger(second, "x0"), trigger(first, "x0"));
  observed.push_back(seen(second, Nanos{900}, "backward0"));
  const Planned third = plan(5500, observed);
  EXPECT_LT(trigger(third, "x0"), trigger(second, "x0"));
  // One that is of another plan ends it.
  observed[1] = seen(first, Nanos{900}, "backward0");
  EXPECT_EQ(trigger(plan(5500, observed), "x0"), trigger(second, "x0"));
  observed[0].stalls.push_back(Nanos{300});
  EXPECT_EQ(trigger(plan(5500, observed), "x0"), trigger(first, "x0"));
}

TEST_F(Capuchin, WhereNothingFitsTheStreamingScheduleIsUsedAndANoteSaysSo) {
  // A weight is read once an iteration: it has no gap within one.
  program_.tensors.push_back({"w", 3000, TensorKind::weight, true});
  const auto w = static_cast<TensorId>(program_.tensors.size()) - 1;
  program_.ops[Chain::kForward0].accesses.push_back({w, AccessMode::read});
  const Planned planned = plan(smallest_budget(program_, 1).bytes);
  EXPECT_TRUE(planned.lowered.streaming);
  EXPECT_THAT(planned.notes, Contains(HasSubstr("do not save enough: Capuchin cannot train")));
}

/// `make_plan` proves each of them.
TEST(CapuchinOfRandomPrograms, WhateverIsObservedThePlanIsProved) {
  int changed = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    FixedWorkload workload(testing::random_program(seed, {.most_layers = 8, .guards = false}));
    const Program& program = **workload.program(workload.sub_batch());
    const Machine machine = testing::random_machine(seed);
    const Bytes peak = load_profile(program, AccessIndex(program), machine.alignment(),
                                    least_workspace_algorithms(program))
                           .peak;
    const Budget budget{std::max(peak * 4 / 5, smallest_budget(program, machine.alignment()).bytes),
                        0};
    std::mt19937_64 random(seed);
    std::vector<Observation> observed;
    for (int round = 0; round < 3; ++round) {
      PlannerOptions options;
      options.observations = observed;
      const auto planned = make_plan(*make_capuchin(), workload, machine, budget, options);
      ASSERT_TRUE(planned) << planned.error().message;
      const Strategy& strategy = planned->lowered.strategy;
      changed += !observed.empty() && !decide_the_same(strategy, observed.back().strategy) ? 1 : 0;
      Observation& seen = observed.emplace_back();
      seen.strategy = strategy;
      for (std::size_t i = 0; i < planned->lowered.plan.steady.instructions.size(); ++i) {
        seen.durations.emplace_back(static_cast<std::int64_t>(random() % 1000));
        seen.stalls.emplace_back(static_cast<std::int64_t>(random() % 3000) - 2000);
      }
    }
  }
  EXPECT_GT(changed, 10);
}

TEST(CapuchinOfRandomPrograms, TrainWhereTheyDoInLess) {
  int with_all_feedback = 0;
  const auto look = [&](const Planned& planned) {
    EXPECT_THAT(planned.notes, Not(Contains(HasSubstr("21 iterations"))));
    const std::string& note = planned.notes.front();
    with_all_feedback += note.find(" 20 iterations") != std::string::npos ? 1 : 0;
  };
  const int programs = testing::usual_or(24, 10);
  EXPECT_GT(testing::expect_training_where_less_is_enough(
                make_capuchin, programs, {.most_layers = 8, .guards = false}, look),
            programs / 2);
  EXPECT_GT(with_all_feedback, 0) << "in some there is always something late";
}

}  // namespace
}  // namespace tidepool
