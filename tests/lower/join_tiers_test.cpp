// Plans over three tiers: proved and timed as predicted. Values on a device are looked at in
// tests/runtime/three_tiers_test.cpp.
#include "lower/join_tiers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "base/at.h"
#include "check/check.h"
#include "sim/simulate.h"
#include "support/sanitized.h"
#include "support/three_tiers.h"

namespace tidepool {
namespace {

using testing::random_three_tiers;

void expect_proved_and_timed(const testing::ThreeTiers& t) {
  const testing::SpacedPlan& p = t.whole;
  const auto proof = check(p.program, p.plan, p.limits);
  ASSERT_TRUE(proof) << proof.error().message;
  constexpr int kIterations = 28;
  const Simulation s = simulate(p.program, p.plan, p.machine, kIterations);
  EXPECT_EQ(s.iteration_time, t.iteration_time);
  const Nanos base = s.iteration_end[kIterations - 2];
  for (std::size_t i = 0; i < t.steps.size(); ++i) {
    EXPECT_EQ(s.iterations.back()[i].start - base, t.steps[i].start);
    EXPECT_EQ(s.iterations.back()[i].end - base, t.steps[i].end);
  }
}

TEST(JoinTiers, RandomPlansAreProvedInsideAllBudgetsAndTimedAsTheyAreSimulated) {
  int with_file = 0;
  int rests_in_file = 0;
  int less_host = 0;
  const auto plans = testing::usual_or<std::uint64_t>(120, 25);
  for (std::uint64_t seed = 0; seed < plans; ++seed) {
    SCOPED_TRACE(seed);
    const auto t = random_three_tiers(seed);
    if (!t) continue;
    expect_proved_and_timed(*t);
    with_file += static_cast<int>(t->whole.plan.arenas[2].bytes > 0);
    less_host += static_cast<int>(t->whole.plan.host_bytes() < t->host_of_upper);
    rests_in_file +=
        static_cast<int>(std::ranges::any_of(t->whole.plan.boundary, [&](PlacementId id) {
          return t->whole.plan.kind_of(id) == SpaceKind::file;
        }));
  }
  // All of it happens.
  EXPECT_GT(with_file, static_cast<int>(plans) / 2);
  EXPECT_GT(less_host, 0);
  EXPECT_GT(rests_in_file, 0);
}

/// Which of the instructions alike an instruction is: both plans have them in the same order.
using Identity = std::tuple<OpId, TensorId, bool, Bytes, int>;

std::vector<Identity> identities(const Plan& plan) {
  std::map<Identity, int> seen;
  std::vector<Identity> all;
  for (const Instruction& x : plan.steady.instructions) {
    Identity id{x.op, kNone, false, 0, 0};
    if (x.kind == InstructionKind::copy) {
      const bool out = plan.kind_of(x.from) == SpaceKind::device;
      const Placement& p = plan.placements[at(out ? x.from : x.to)];
      id = {kNone, p.tensor, out, p.offset, p.space != 0 ? -1 : 0};  // -1: with a file
    }
    if (std::get<4>(id) == 0) std::get<4>(id) = ++seen[id];
    all.push_back(id);
  }
  return all;
}

// A trigger or barrier of the first plan gives addresses no reason to wait: it is kept all the
// same.
TEST(JoinTiers, OpsKeepTheWaitsThatTheFirstPlanGaveThem) {
  std::size_t waits = 0;
  for (std::uint64_t seed = 0; seed < testing::usual_or<std::uint64_t>(40, 10); ++seed) {
    SCOPED_TRACE(seed);
    const auto drawn = testing::random_plan(seed);
    const auto t = random_three_tiers(seed);
    if (!drawn || !t) continue;
    const Plan& upper = drawn->lowered.plan;
    const std::vector<Identity> of_upper = identities(upper);
    std::map<Identity, std::size_t> place;
    const std::vector<Identity> of_whole = identities(t->whole.plan);
    for (std::size_t i = 0; i < of_whole.size(); ++i) place[of_whole[i]] = i;
    for (std::size_t i = 0; i < of_upper.size(); ++i) {
      const Instruction& x = upper.steady.instructions[i];
      ASSERT_TRUE(place.contains(of_upper[i]));
      if (x.op == kNone || t->whole.program.ops[at(x.op)].place == OpPlace::host) continue;
      for (const Wait& w : x.waits) {
        if (w.iteration != 0) continue;
        EXPECT_LE(t->steps[place[of_upper[at(w.index)]]].end, t->steps[place[of_upper[i]]].start);
        ++waits;
      }
    }
  }
  EXPECT_GT(waits, 100u);
}

}  // namespace
}  // namespace tidepool
