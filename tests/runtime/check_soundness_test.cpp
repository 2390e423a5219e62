// Plans damaged at random: whatever `check` still accepts must compute what the program says, at
// any speed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "check/check.h"
#include "lower/lower.h"
#include "support/attacks.h"
#include "support/random_program.h"
#include "support/run_plan.h"

namespace tidepool {
namespace {

using testing::random_machine;
using testing::random_program;
using testing::random_strategy;
using testing::run_at_random_speed;
using testing::run_in_order;
using testing::RunOutcome;
using testing::TagRunner;

constexpr std::int64_t kSoundnessIterations = 2;  // what check unrolls
constexpr std::uint64_t kSpeeds = 20;

struct Sample {
  Program program;
  Bytes budget = 0;
  Lowered lowered;
};

/// A plan of a small random program with small tensors, under a tight budget.
Sample sample(std::uint64_t seed) {
  constexpr std::size_t kMostOps = 20;
  Sample s;
  do {
    s.program = random_program(seed);
    seed += 1000;
  } while (s.program.ops.size() > kMostOps);
  for (Tensor& t : s.program.tensors) t.bytes = std::max<Bytes>(8, t.bytes / 128 * 8);
  for (Op& op : s.program.ops) {
    for (Algorithm& a : op.algorithms) a.workspace = a.workspace / 128 * 8;
  }
  const Machine machine = random_machine(seed);
  Lowering lowering(s.program, machine);
  const Bytes least = smallest_budget(s.program, machine.alignment()).bytes;
  s.budget = least + least * static_cast<Bytes>(seed % 4) / 3;
  auto lowered =
      lowering.lower(random_strategy(s.program, lowering.index(), 0.6, seed), {s.budget, 0});
  EXPECT_TRUE(lowered) << seed;
  s.lowered = std::move(*lowered);
  return s;
}

bool accepted(const Sample& s) {
  return check(s.program, s.lowered.plan, {s.budget, 0}).has_value();
}

/// The plan as it is now gives the right values at every speed tried.
void expect_right(const Sample& s, const TagRunner& meaning, std::uint64_t seed) {
  for (std::uint64_t speed = 0; speed < kSpeeds; ++speed) {
    const RunOutcome outcome = run_at_random_speed(s.program, s.lowered.plan, meaning,
                                                   kSoundnessIterations, seed * 100 + speed);
    ASSERT_TRUE(outcome.values_right) << "accepted by check, wrong at speed " << speed;
    ASSERT_EQ(outcome.races, 0u) << "accepted by check, races at speed " << speed;
  }
}

class CheckSoundness : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(CheckSoundness, EachSingleWaitIsNeededOrItsRemovalIsHarmless) {
  std::size_t waits = 0;
  std::size_t refused = 0;
  for (std::uint64_t i = 0; i < testing::some<std::uint64_t>(4, 10); ++i) {
    const std::uint64_t seed = GetParam() * 10 + i;
    SCOPED_TRACE(seed);
    Sample s = sample(seed);
    ASSERT_TRUE(accepted(s));
    TagRunner meaning(s.program);
    run_in_order(s.program, s.lowered.strategy.algorithms, kSoundnessIterations, meaning);
    for (Schedule* part : {&s.lowered.plan.entry, &s.lowered.plan.steady, &s.lowered.plan.exit}) {
      for (Instruction& x : part->instructions) {
        for (std::size_t w = 0; w < x.waits.size(); ++w) {
          ++waits;
          const std::vector<Wait> before = x.waits;
          x.waits.erase(x.waits.begin() + static_cast<std::ptrdiff_t>(w));
          if (accepted(s)) {
            expect_right(s, meaning, seed);
          } else {
            ++refused;
          }
          x.waits = before;
          if (HasFatalFailure()) return;
        }
      }
    }
  }
  EXPECT_GT(refused, waits / 4) << "of " << waits << " waits";
}

TEST_P(CheckSoundness, PlansWithRandomDamageAreRefusedOrRight) {
  for (std::uint64_t i = 0; i < testing::some<std::uint64_t>(4, 10); ++i) {
    const std::uint64_t seed = GetParam() * 10 + i;
    SCOPED_TRACE(seed);
    Sample s = sample(seed);
    TagRunner meaning(s.program);
    run_in_order(s.program, s.lowered.strategy.algorithms, kSoundnessIterations, meaning);
    const Plan original = s.lowered.plan;
    Random random(seed);
    for (int damage = 0; damage < 60; ++damage) {
      Plan& plan = s.lowered.plan;
      plan = original;
      const auto any = [&](auto& list) -> auto& { return list[random.below(list.size())]; };
      Instruction& x = any(plan.steady.instructions);
      switch (random.below(6)) {
        case 0:
          any(plan.placements).offset = any(plan.placements).offset;
          break;
        case 1:
          any(plan.placements).offset += random.below(2) == 0 ? 64 : -64;
          break;
        case 2:
          if (!x.operands.empty()) {
            any(x.operands) = static_cast<PlacementId>(random.below(plan.placements.size()));
          }
          break;
        case 3:
          if (x.kind == InstructionKind::copy) {
            (random.below(2) == 0 ? x.from : x.to) =
                static_cast<PlacementId>(random.below(plan.placements.size()));
          }
          break;
        case 4:
          if (!x.waits.empty()) {
            Wait& w = any(x.waits);
            w.index = std::max(0, w.index - 1 - static_cast<std::int32_t>(random.below(4)));
            w.stream = plan.steady.instructions[static_cast<std::size_t>(w.index)].stream;
          }
          break;
        default:
          if (x.workspace_bytes > 0) x.workspace_offset = any(plan.placements).offset;
          break;
      }
      if (!accepted(s)) continue;
      for (std::uint64_t speed = 0; speed < 4; ++speed) {
        const RunOutcome outcome =
            run_at_random_speed(s.program, plan, meaning, kSoundnessIterations, seed * 977 + speed);
        ASSERT_TRUE(outcome.values_right) << "damage " << damage;
        ASSERT_EQ(outcome.races, 0u) << "damage " << damage;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, CheckSoundness, ::testing::Range<std::uint64_t>(0, 5));

}  // namespace
}  // namespace tidepool
