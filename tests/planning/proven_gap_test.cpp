// The proven gap of a plan: when it is known, and what is said when it is not.
#include "planning/proven_gap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "ir/load_profile.h"
#include "lower/overhead.h"
#include "planners/registry.h"
#include "planning/make_plan.h"
#include "support/swap_programs.h"

namespace tidepool {
namespace {

using ::testing::HasSubstr;
using testing::mib;

class ProvenGapTest : public ::testing::Test {
 protected:
  [[nodiscard]] Lowered plan(Bytes budget) const {
    FixedWorkload workload(program_);
    return make_plan(**make_planner("autoswap"), workload, machine_, {budget, 0}, {})->lowered;
  }
  [[nodiscard]] ProvenGap gap(const Lowered& lowered, const FluidOptions& options = {}) const {
    return proven_gap(program_, machine_, lowered, unlimited(), Budget{kBudget}, options).value();
  }
  [[nodiscard]] Nanos unlimited() const {
    return unlimited_time(program_, machine_, AlgorithmPolicy::fastest);
  }

  // D needs 65 MiB and z, y and x only leave in time in part.
  static constexpr Bytes kBudget = mib(75);
  Program program_ = testing::SwapExample::make();
  Machine machine_ = testing::two_mib_a_ms();
};

TEST_F(ProvenGapTest, IsTheOverheadBeyondTheLeast) {
  const Lowered lowered = plan(kBudget);
  const ProvenGap g = gap(lowered);
  ASSERT_TRUE(g.gap && g.least_overhead) << g.unknown;
  EXPECT_GT(*g.least_overhead, 0) << "the example needs a stall";
  EXPECT_GE(*g.gap, 0);
  EXPECT_NEAR(*g.least_overhead + *g.gap, overhead(lowered.iteration_time, unlimited()), 1e-12);
  Json json;
  g.add_to(json);
  EXPECT_EQ(json["optimality_gap"], *g.gap);
  EXPECT_EQ(json["least_overhead"], *g.least_overhead);
  EXPECT_THAT(g.text(), HasSubstr("no plan with these rounds has an overhead below"));
}

TEST_F(ProvenGapTest, IsZeroAndNotWorthALineWhereEverythingFits) {
  const Bytes enough = mib(200);
  const ProvenGap g =
      proven_gap(program_, machine_, plan(enough), unlimited(), Budget{enough}, {}).value();
  EXPECT_EQ(g.gap, 0.0);
  EXPECT_EQ(g.least_overhead, 0.0);
  EXPECT_THAT(g.text(), HasSubstr("is faster"));
}

/// The gap is among plans with the chosen algorithms; what others could save is said apart.
TEST_F(ProvenGapTest, SaysWhatNoPlanWithOtherAlgorithmsCanBeat) {
  for (Op& op : program_.ops) {
    op.algorithms.push_back({"half", op.algorithms[0].time / 2, mib(1), true});
  }
  const Lowered lowered = plan(kBudget);
  const ProvenGap g = gap(lowered);
  ASSERT_TRUE(g.gap && g.least_time_of_any) << g.unknown;
  const Nanos fastest = compute_time(program_, fastest_algorithms(program_));
  EXPECT_GE(*g.least_time_of_any, fastest);
  EXPECT_LE(*g.least_time_of_any, lowered.iteration_time);
  EXPECT_THAT(g.text(),
              HasSubstr("no plan with these algorithms and rounds has an overhead below"));
  EXPECT_THAT(g.text(), HasSubstr("none with other algorithms takes less than"));
  Json json;
  g.add_to(json);
  EXPECT_EQ(json["least_ms_of_any_algorithms"], to_ms(*g.least_time_of_any));
}

TEST_F(ProvenGapTest, APlanBelowItsBoundIsAnInternalError) {
  Lowered lowered = plan(kBudget);
  lowered.iteration_time = lowered.compute_time + Nanos{1};
  const auto g = proven_gap(program_, machine_, lowered, unlimited(), Budget{kBudget}, {});
  ASSERT_FALSE(g);
  EXPECT_EQ(g.error().code, ErrorCode::check_failed);
  EXPECT_THAT(g.error().message, HasSubstr("internal error"));
}

void expect_unknown(const ProvenGap& g, const char* why) {
  EXPECT_FALSE(g.gap);
  EXPECT_THAT(g.text(), HasSubstr(why));
  Json json;
  g.add_to(json);
  EXPECT_TRUE(json["optimality_gap"].is_null());
  EXPECT_TRUE(json["least_overhead"].is_null());
  EXPECT_EQ(json["bound_stopped"], g.stopped);
  EXPECT_EQ(json["bound_refused"].is_null(), g.refused.empty());
}

TEST_F(ProvenGapTest, IsKnownOfAPlanThatRecomputes) {
  Lowered lowered = plan(kBudget);
  auto& steady = lowered.plan.steady.instructions;
  const auto is_op = [](const Instruction& x) { return x.kind == InstructionKind::op; };
  steady.push_back(*std::find_if(steady.begin(), steady.end(), is_op));
  EXPECT_TRUE(first_runs_in_order(program_, lowered.plan));
  const ProvenGap g = gap(lowered);
  EXPECT_TRUE(g.gap) << g.unknown;
}

TEST_F(ProvenGapTest, IsUnknownOfAPlanThatReordersOps) {
  Lowered lowered = plan(kBudget);
  auto& steady = lowered.plan.steady.instructions;
  std::reverse(steady.begin(), steady.end());
  EXPECT_FALSE(first_runs_in_order(program_, lowered.plan));
  expect_unknown(gap(lowered), "reorders");
}

TEST_F(ProvenGapTest, IsByTheOpThatBindsWhenTheTimeIsUp) {
  FluidOptions options;
  options.time_limit = Nanos{0};
  const Lowered lowered = plan(kBudget);
  const ProvenGap g = gap(lowered, options);
  EXPECT_TRUE(g.stopped);
  EXPECT_EQ(g.by, BoundBy::binding_op);
  ASSERT_TRUE(g.gap && g.least_overhead) << g.unknown;
  EXPECT_GE(*g.gap, *gap(lowered).gap) << "the linear program proves more";
  EXPECT_THAT(g.text(), HasSubstr("at most "));
  EXPECT_THAT(g.text(), HasSubstr("`time_limit`"));
}

TEST_F(ProvenGapTest, IsUnknownWhenInterrupted) {
  FluidOptions options;
  options.stop = [] { return true; };
  expect_unknown(gap(plan(kBudget), options), "interrupted");
}

TEST_F(ProvenGapTest, TheBoundOfSomeAlgorithmsIsNoneOfOthers) {
  Strategy strategy = plan(kBudget).strategy;
  const OverheadBound bound =
      overhead_bound(program_, machine_, strategy.algorithms, unlimited(), Budget{kBudget}, {});
  EXPECT_TRUE(bound.covers(strategy));
  strategy.algorithms[0] = 1;
  EXPECT_FALSE(bound.covers(strategy));
}

}  // namespace
}  // namespace tidepool
