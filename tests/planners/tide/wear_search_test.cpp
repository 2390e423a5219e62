#include "planners/tide/wear_search.h"

#include <gtest/gtest.h>

#include "base/json.h"
#include "check/check.h"
#include "lower/plan_file.h"
#include "planners/tide/tide.h"
#include "planners/tide/tide_search.h"
#include "planners/toolkit/wear.h"
#include "planning/make_plan.h"
#include "schedule/plan_totals.h"
#include "support/attacks.h"
#include "support/spill_machine.h"
#include "support/swap_programs.h"

namespace tidepool {
namespace {

std::uint64_t wear_programs() { return testing::some<std::uint64_t>(testing::usual_or(3, 1), 5); }
const AlgorithmSpace kNoChoice{};

WearSearch::Options wear_evaluations(std::int64_t evaluations) {
  return {1, Allowance::of(evaluations), {}};
}

/// Two MiB a millisecond to the file and back.
Machine two_mib_a_ms_to_a_file() {
  SpillLink link;
  link.write = link.read = link.memory = testing::two_mib_a_ms().to_host();
  link.duplex = true;
  link.alignment = 512;
  return with_spill(testing::two_mib_a_ms(), link);
}

/// Any of the two larger tensors is enough, and both have the time to leave.
TEST(WearSearch, KeepsTheLargestOfWhatNeedsNotLeave) {
  const Program program = testing::SwapExample::make();
  const Machine machine = two_mib_a_ms_to_a_file();
  Lowering lowering(program, machine);
  const Budget budget{testing::mib(102), 0};
  auto plan = lowering.lower(lowering.everything_away(least_workspace_algorithms(program)), budget);
  ASSERT_TRUE(plan) << plan.error().message;
  ASSERT_GE(written_to_files(plan->plan), testing::mib(52));
  const Nanos enough = as_fast_as(plan->iteration_time);
  WearSearch search(lowering, budget, {}, kNoChoice, enough);
  search.add_plan(std::move(*plan));
  search.run(wear_evaluations(500));
  EXPECT_EQ(written_to_files(search.best().plan), testing::mib(16));
  EXPECT_LE(search.best().iteration_time, enough);
}

TEST(WearSearch, FindsProvedPlansThatAreAsFastAndWriteLessAndMoreOfItIsNeverWorse) {
  int less = 0;
  for (std::uint64_t seed = 0; seed < wear_programs(); ++seed) {
    SCOPED_TRACE(seed);
    const Program program = testing::random_program(seed);
    const Machine machine = testing::with_random_file(testing::random_machine(seed), seed);
    Lowering lowering(program, machine);
    const Budget budget{smallest_budget(program, machine.alignment()).bytes * 5 / 4, 0};
    const Strategy away = lowering.everything_away(least_workspace_algorithms(program));
    const auto first = lowering.lower(away, budget);
    ASSERT_TRUE(first) << first.error().message;
    const Nanos enough = as_fast_as(first->iteration_time);
    Bytes before = written_to_files(first->plan);
    std::string shorter;
    for (const std::int64_t evaluations : {100, 100, 600}) {
      WearSearch search(lowering, budget, {}, kNoChoice, enough);
      search.add_plan(*first);
      search.run(wear_evaluations(evaluations));
      const Plan& plan = search.best().plan;
      const Bytes written = written_to_files(plan);
      EXPECT_LE(search.best().iteration_time, enough);
      EXPECT_LE(written, before);
      const auto proof = check(program, plan, check_limits(machine, budget));
      EXPECT_TRUE(proof) << proof.error().message;
      less += written < before ? 1 : 0;
      before = written;
      PlanFile file;
      file.program = program;
      file.machine = machine;
      file.plan = plan;
      if (evaluations == 100 && !shorter.empty()) {
        EXPECT_EQ(to_json(file).dump(), shorter) << "repeats";
      }
      shorter = to_json(file).dump();
    }
  }
  EXPECT_GT(less, 0);
}

PlannerOptions tide_of_evaluations(std::int64_t evaluations) {
  PlannerOptions options;
  options.evaluation_limit = evaluations;
  return options;
}

/// On machines without a file nothing is searched for, and nothing changes.
TEST(WearSearch, WithoutAFileTheFastestPlanStays) {
  const Program program = testing::random_program(5);
  const Machine machine = testing::random_machine(5);
  const Budget budget{smallest_budget(program, machine.alignment()).bytes * 5 / 4, 0};
  FixedWorkload workload(program);
  const PlannerOptions options = tide_of_evaluations(500);
  auto context = PlannerContext::make(workload, machine, budget, options);
  ASSERT_TRUE(context);
  Lowering& lowering = context->lowering();
  auto first =
      lowering.lower(lowering.everything_away(least_workspace_algorithms(program)), budget);
  ASSERT_TRUE(first);
  TideSearch search(*context, std::move(*first), {.threads = 1, .name = "tide", .origin = "a"});
  search.run();
  const std::string note = search.note();
  const Nanos time = search.best().iteration_time;
  const std::vector<Decision> gaps = search.best().strategy.gaps;
  search.write_less(Allowance::of(500));
  EXPECT_EQ(search.note(), note) << "no more evaluations";
  EXPECT_EQ(search.best().iteration_time, time);
  EXPECT_EQ(search.best().strategy.gaps, gaps);
}

/// What a drive is spared costs at most half a percent.
TEST(WearSearch, TideWritesNoMoreThanItsFastestPlanAndRepeats) {
  for (std::uint64_t seed = 0; seed < wear_programs(); ++seed) {
    SCOPED_TRACE(seed);
    const Program program = testing::random_program(seed);
    const Machine machine = testing::with_random_file(testing::random_machine(seed), seed);
    const Budget budget{smallest_budget(program, machine.alignment()).bytes * 3 / 2, 0};
    FixedWorkload workload(program);
    const PlannerOptions options = tide_of_evaluations(800);
    auto context = PlannerContext::make(workload, machine, budget, options);
    ASSERT_TRUE(context);
    auto first = context->lowering().lower(
        context->lowering().everything_away(least_workspace_algorithms(program)), budget);
    ASSERT_TRUE(first);
    TideSearch search(*context, std::move(*first), {.threads = 1, .name = "tide", .origin = "a"});
    search.run();
    const Nanos fastest = search.best().iteration_time;
    const Bytes written = written_to_files(search.best().plan);
    search.write_less(Allowance::of(500));
    EXPECT_LE(search.best().iteration_time, as_fast_as(fastest));
    EXPECT_LE(written_to_files(search.best().plan), written);
    const auto planned = make_plan(*make_tide(1), workload, machine, budget, options);
    const auto again = make_plan(*make_tide(2), workload, machine, budget, options);
    ASSERT_TRUE(planned && again);
    EXPECT_EQ(again->lowered.strategy.gaps, planned->lowered.strategy.gaps);
    EXPECT_EQ(again->lowered.iteration_time, planned->lowered.iteration_time);
  }
}

}  // namespace
}  // namespace tidepool
