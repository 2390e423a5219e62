#include "planning/make_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <thread>
#include <vector>

#include "check/check.h"
#include "ir/load_profile.h"
#include "lower/memory_sizes.h"
#include "planners/toolkit/strategy_builder.h"
#include "planning/obtain_plan.h"
#include "support/sub_batch_workload.h"

namespace tidepool {
namespace {

using ::testing::HasSubstr;
using testing::SubBatchWorkload;

const Machine kMachine = testing::byte_a_nanosecond(64);
const Budget kPlenty{Bytes{1} << 30, 0};

/// Chooses rounds of a size and the second algorithm of every op that has one.
class Chooser : public Planner {
 public:
  explicit Chooser(std::int64_t sub_batch, bool lowers = false)
      : sub_batch_(sub_batch), lowers_(lowers) {}

  [[nodiscard]] std::string_view name() const override { return "chooser"; }

  Result<PlannerOutput> plan(PlannerContext& context) override {
    seen_observations = context.options().observations;
    const auto lowering = context.lowering(sub_batch_);
    if (!lowering) return fail(lowering.error());
    const Program& program = (*lowering)->program();
    StrategyBuilder builder(program, (*lowering)->index(), context.algorithms(program));
    for (OpId op = 0; op < static_cast<OpId>(program.ops.size()); ++op) {
      if (program.ops[static_cast<std::size_t>(op)].algorithms.size() > 1) builder.run(op, 1);
    }
    auto strategy = builder.build();
    if (!strategy) return fail(strategy.error());
    if (!lowers_) return PlannerOutput{std::move(*strategy), {"as told"}};
    auto trial = context.place(*strategy, {});
    if (!trial) return fail(trial.error());
    return PlannerOutput{std::move(*trial->lowered), {"as told"}};
  }

  std::span<const Observation> seen_observations;

 private:
  std::int64_t sub_batch_;
  bool lowers_;
};

TEST(MakePlan, LowersAndProvesTheSubBatchAndAlgorithmsThatAPlannerChose) {
  for (const bool lowers : {false, true}) {
    for (const std::int64_t sub_batch : {8, 4, 1}) {
      SCOPED_TRACE(sub_batch);
      SubBatchWorkload workload;
      Chooser chooser(sub_batch, lowers);
      const auto planned = make_plan(chooser, workload, kMachine, kPlenty, {});
      ASSERT_TRUE(planned) << planned.error().message;
      EXPECT_EQ(planned->sub_batch(), sub_batch);
      EXPECT_EQ(planned->lowered.plan.planner, "chooser");
      EXPECT_EQ(planned->lowered.strategy.planner, "chooser");
      EXPECT_THAT(planned->notes, ::testing::ElementsAre("as told"));
      const Program& program = **workload.program(planned->sub_batch());
      EXPECT_EQ(program.rounds(), 8 / sub_batch);
      EXPECT_TRUE(check(program, planned->lowered.plan, {kPlenty.device, 0, 64, true}));
      // It runs what was chosen: all ops of all rounds, by their second algorithms.
      int fast = 0;
      for (const Instruction& x : planned->lowered.plan.steady.instructions) {
        if (x.kind == InstructionKind::op && x.algorithm == 1) ++fast;
      }
      EXPECT_EQ(fast, 2 * SubBatchWorkload::kLayers * 8 / sub_batch);
    }
  }
}

TEST(MakePlan, MakesAProgramOnceAndOnlyWhenAPlannerAsksForIt) {
  SubBatchWorkload workload;
  Chooser chooser(4);
  ASSERT_TRUE(make_plan(chooser, workload, kMachine, kPlenty, {}));
  EXPECT_EQ(workload.asked(), (std::map<std::int64_t, int>{{8, 1}, {4, 1}}));
}

TEST(MakePlan, ASubBatchThatIsNotOnOfferIsRefused) {
  SubBatchWorkload workload;
  Chooser chooser(3);
  const auto planned = make_plan(chooser, workload, kMachine, kPlenty, {});
  ASSERT_FALSE(planned);
  EXPECT_EQ(planned.error().code, ErrorCode::usage);
}

TEST(MakePlan, APlannerThatDecidesWhatItMayNotIsRefusedByName) {
  for (const bool lowers : {false, true}) {
    SubBatchWorkload workload;
    Chooser chooser(4, lowers);
    PlannerOptions options;
    options.may.sub_batch = false;
    auto planned = make_plan(chooser, workload, kMachine, kPlenty, options);
    ASSERT_FALSE(planned);
    EXPECT_THAT(planned.error().message, HasSubstr("planner 'chooser' decided sub-batch 4"));
    options.may = {};
    options.may.algorithms = false;
    planned = make_plan(chooser, workload, kMachine, kPlenty, options);
    ASSERT_FALSE(planned);
    EXPECT_THAT(planned.error().message, HasSubstr("decided algorithms"));
  }
}

TEST(MakePlan, NoPlanIsSlowerThanAKnownOne) {
  const auto plan_of = [](std::int64_t sub_batch, std::span<const Lowered> known) {
    SubBatchWorkload workload;
    Chooser chooser(sub_batch, true);
    PlannerOptions options;
    options.known = known;
    return *make_plan(chooser, workload, kMachine, kPlenty, options);
  };
  const Planned one = plan_of(8, {});
  const Planned other = plan_of(1, {});
  ASSERT_NE(one.lowered.iteration_time, other.lowered.iteration_time);
  const bool first = one.lowered.iteration_time < other.lowered.iteration_time;
  const Planned& fast = first ? one : other;
  const Planned& slow = first ? other : one;
  const Planned told = plan_of(slow.sub_batch(), {&fast.lowered, 1});
  EXPECT_EQ(told.lowered.iteration_time, fast.lowered.iteration_time);
  EXPECT_EQ(told.sub_batch(), fast.sub_batch());
  EXPECT_THAT(told.notes, ::testing::ElementsAre(HasSubstr("that was known")));
  const Planned own = plan_of(fast.sub_batch(), {&slow.lowered, 1});
  EXPECT_EQ(own.lowered.iteration_time, fast.lowered.iteration_time);
  EXPECT_THAT(own.notes, ::testing::ElementsAre("as told"));
}

TEST(MakePlan, WhereNothingElseFitsTheStreamingScheduleNeedsTheRightToSwap) {
  SubBatchWorkload workload;
  const Bytes least = smallest_budget(**workload.program(8), 64).bytes;
  Chooser chooser(8);
  PlannerOptions options;
  const auto streamed = make_plan(chooser, workload, kMachine, {least, 0}, options);
  ASSERT_TRUE(streamed) << streamed.error().message;
  EXPECT_TRUE(streamed->lowered.streaming);
  EXPECT_EQ(streamed->lowered.strategy.planner, "chooser");
  options.may.swap = false;
  const auto refused = make_plan(chooser, workload, kMachine, {least, 0}, options);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::infeasible);
}

/// Loses its way where the host has a budget.
class ShortOfHost : public Planner {
 public:
  [[nodiscard]] std::string_view name() const override { return "short_of_host"; }
  Result<PlannerOutput> plan(PlannerContext& context) override {
    if (context.budget().host > 0) return fail(ErrorCode::infeasible, "lost");
    const Lowering& lowering = context.lowering();
    return PlannerOutput{lowering.everything_away(context.algorithms(lowering.program())), {}};
  }
};

/// Regression: 9.9 MiB were "too small; the smallest feasible one is 9.2 MiB".
TEST(MakePlan, APlanForAnyHostBudgetServesWhereItsBytesAreEnough) {
  SubBatchWorkload workload;
  ShortOfHost planner;
  const auto any = make_plan(planner, workload, kMachine, kPlenty, {});
  ASSERT_TRUE(any) << any.error().message;
  const Bytes used = any->lowered.plan.host_bytes();
  ASSERT_GT(used, 0);
  Budget budget = kPlenty;
  budget.host = used;
  const auto exact = make_plan(planner, workload, kMachine, budget, {});
  ASSERT_TRUE(exact) << exact.error().message;
  EXPECT_EQ(exact->lowered.plan.host_bytes(), used);
  budget.host = used - 1;
  const auto less = make_plan(planner, workload, kMachine, budget, {});
  ASSERT_FALSE(less);
  EXPECT_THAT(less.error().message, HasSubstr("lost"));
}

/// Takes all of its time, and has what it keeps in the host budget that is `enough`.
class SlowAndFrugal : public Planner {
 public:
  explicit SlowAndFrugal(Bytes enough) : enough_(enough) {}
  [[nodiscard]] std::string_view name() const override { return "slow_and_frugal"; }
  Result<PlannerOutput> plan(PlannerContext& context) override {
    const Stop over = context.stopped_or_late();
    while (!over.requested()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const Lowering& lowering = context.lowering();
    const Bytes host = context.budget().host;
    if (host == 0) {
      return PlannerOutput{lowering.everything_away(context.algorithms(lowering.program())), {}};
    }
    if (host < enough_) return fail(ErrorCode::infeasible, "lost");
    return PlannerOutput{context.everything_kept(), {}};
  }

 private:
  Bytes enough_;
};

/// Regression: 29.12 GiB were named where 20 were enough, as the search that failed had left no
/// time to look for less.
TEST(MakePlan, TheHostBudgetThatIsNamedIsLookedForWhenTheTimeIsOver) {
  SubBatchWorkload workload;
  ShortOfHost greedy;
  const Bytes most = make_plan(greedy, workload, kMachine, kPlenty, {})->lowered.plan.host_bytes();
  const Bytes enough = most / 4;
  SlowAndFrugal planner(enough);
  Observer nobody;
  const Profile profile{"here", **workload.program(8), kMachine};
  PlannerOptions options;
  options.time_limit = std::chrono::milliseconds(120);
  const auto plan =
      obtain_plan(planner, {profile, {kPlenty.device, 64}, "slow_and_frugal", options},
                  Cache({.off = true}, nobody), true, nobody);
  ASSERT_FALSE(plan);
  EXPECT_TRUE(plan.error().of_host);
  ASSERT_TRUE(plan.error().smallest_feasible);
  EXPECT_GE(*plan.error().smallest_feasible, enough);
  EXPECT_LE(*plan.error().smallest_feasible, enough + (most - enough) / 100);
}

/// Regression: a machine with 1 MiB was given a plan of 3 MiB.
TEST(MakePlan, TheMemoryOfTheMachineLimitsTheBudget) {
  SubBatchWorkload workload;
  Machine small = kMachine;
  small.name = "small";
  small.set_device_memory(kPlenty.device - 1);
  Chooser chooser(8);
  const auto above = make_plan(chooser, workload, small, kPlenty, {});
  ASSERT_FALSE(above);
  EXPECT_EQ(above.error().code, ErrorCode::usage);
  EXPECT_THAT(above.error().message, HasSubstr("1073741824 B (1.00 GiB)"));
  EXPECT_THAT(above.error().message, HasSubstr("machine 'small': 1073741823 B"));
  small.set_device_memory(kPlenty.device);
  ASSERT_TRUE(make_plan(chooser, workload, small, kPlenty, {}));
  // Without a limit the memory is one.
  const auto unlimited = make_plan(chooser, workload, small, {kNoDeviceLimit, 0}, {});
  ASSERT_TRUE(unlimited);
  EXPECT_LE(unlimited->lowered.plan.device_bytes(), small.device_memory());
  small.spaces[1].bytes = 1;
  const auto host = make_plan(chooser, workload, small, kPlenty, {});
  ASSERT_FALSE(host) << "the host's size counts where its budget has no limit";
  EXPECT_THAT(host.error().message, HasSubstr("host"));
  // For presets people may wish for more memory.
  Machine preset = *find_machine("k40");
  EXPECT_TRUE(make_plan(chooser, workload, preset, {2 * preset.device_memory(), 0}, {}));
}

/// Keeps everything under the name that it is given, and remembers what it might have done.
class Keeper : public Planner {
 public:
  explicit Keeper(std::string_view name) : name_(name) {}
  [[nodiscard]] std::string_view name() const override { return name_; }
  Result<PlannerOutput> plan(PlannerContext& context) override {
    asked.push_back(context.options().may);
    return PlannerOutput{context.everything_kept(), {}};
  }

  std::vector<MayDecide> asked;

 private:
  std::string_view name_;
};

std::vector<MayDecide> asked_of(std::string_view planner, const Machine& machine,
                                const Budget& budget) {
  SubBatchWorkload workload;
  Keeper keeper(planner);
  EXPECT_TRUE(make_plan(keeper, workload, machine, budget, {}));
  return keeper.asked;
}

/// Regression: `auto` moved 699 MiB where nobody had asked for less memory.
TEST(MakePlan, WithoutALimitNothingMovesUnlessAnotherPlannerIsAskedFor) {
  const auto free = asked_of("auto", kMachine, no_limit());
  ASSERT_EQ(free.size(), 1U);
  EXPECT_FALSE(free[0].swap || free[0].recompute);
  EXPECT_TRUE(free[0].algorithms && free[0].sub_batch);
  for (const MayDecide& may : {asked_of("auto", kMachine, kPlenty).back(),
                               asked_of("autoswap", kMachine, no_limit()).back()}) {
    EXPECT_TRUE(may.swap && may.recompute);
  }
  Machine small = kMachine;
  small.set_device_memory(smallest_budget(**SubBatchWorkload().program(8), 64).bytes);
  const auto short_of_memory = asked_of("auto", small, no_limit());
  ASSERT_EQ(short_of_memory.size(), 2U) << "its memory is a limit where not everything fits";
  EXPECT_FALSE(short_of_memory[0].swap);
  EXPECT_TRUE(short_of_memory[1].swap && short_of_memory[1].recompute);
}

/// A plan that was known of a smaller budget moves something.
TEST(MakePlan, WithoutALimitPlansThatAreKnownAreNoAnswer) {
  SubBatchWorkload workload;
  Chooser chooser(8, true);
  const Planned fast = *make_plan(chooser, workload, kMachine, kPlenty, {});
  PlannerOptions options;
  options.may.algorithms = false;
  options.known = {&fast.lowered, 1};
  Keeper keeper("auto");
  const auto kept = make_plan(keeper, workload, kMachine, no_limit(), options);
  ASSERT_TRUE(kept) << kept.error().message;
  EXPECT_GT(kept->lowered.iteration_time, fast.lowered.iteration_time);
  EXPECT_THAT(kept->notes, ::testing::ElementsAre(HasSubstr("no `budget`")));
}

TEST(MakePlan, APlannerSeesTheObservations) {
  SubBatchWorkload workload;
  Chooser chooser(8);
  const std::array observations{Observation{{Nanos{1}}, {Nanos{2}}, {}}};
  PlannerOptions options;
  options.observations = observations;
  ASSERT_TRUE(make_plan(chooser, workload, kMachine, kPlenty, options));
  EXPECT_EQ(chooser.seen_observations.data(), observations.data());
}

TEST(PlannerContext, TrialsTimeAndPlaceAStrategyAndSayWhatItNeeds) {
  SubBatchWorkload workload;
  const Budget budget{24 * 1024, 0};
  const PlannerOptions options;
  auto context = PlannerContext::make(workload, kMachine, budget, options);
  ASSERT_TRUE(context);
  const Strategy kept = context->everything_kept();
  const auto free = context->time(kept, {kPlenty.device});
  ASSERT_TRUE(free);
  EXPECT_TRUE(free->feasible);
  EXPECT_EQ(free->compute_time, compute_time(**workload.program(8), kept.algorithms));
  const auto tight = context->time(kept, {free->peak_load - 1});
  ASSERT_TRUE(tight);
  EXPECT_FALSE(tight->feasible) << "the load exceeds the limit";
  LowerOptions placing;
  placing.load_limit = kPlenty.device;
  const auto trial = context->place(kept, placing);
  ASSERT_TRUE(trial);
  EXPECT_FALSE(trial->lowered) << "more than the budget";
  EXPECT_GE(trial->needed, free->peak_load);
  EXPECT_EQ(trial->excess(budget), trial->needed - budget.device);
}

}  // namespace
}  // namespace tidepool
