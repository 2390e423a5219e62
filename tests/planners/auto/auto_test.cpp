#include "planners/auto/auto.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "base/file.h"
#include "base/json.h"
#include "ir/load_profile.h"
#include "ir/program_json.h"
#include "planners/registry.h"
#include "planning/make_plan.h"
#include "support/program_builder.h"
#include "support/random_program.h"
#include "support/sub_batch_workload.h"

namespace tidepool {
namespace {

/// A chain of values, each made of the one before and read again in reverse order.
Program auto_chain(int length, Nanos op_time) {
  using enum AccessMode;
  testing::ProgramBuilder b("chain");
  std::vector<TensorId> x;
  for (int i = 0; i < length; ++i) {
    x.push_back(b.tensor("x" + std::to_string(i), 1 << 20));
    std::vector<Access> accesses{{x.back(), write}};
    if (i > 0) accesses.push_back({x[static_cast<std::size_t>(i) - 1], read});
    b.device("forward" + std::to_string(i), accesses, op_time);
    b.last().random = i == 0;
  }
  const TensorId g = b.tensor("g", 1 << 20);
  b.device("turn", {{g, write}, {x.back(), read}}, op_time);
  for (int i = length - 1; i-- > 0;) {
    b.device("backward" + std::to_string(i), {{g, update}, {x[static_cast<std::size_t>(i)], read}},
             op_time);
  }
  return b.build();
}

Machine auto_machine(double bytes_per_second) {
  Machine m;
  m.set_links({bytes_per_second, Nanos{0}}, {bytes_per_second, Nanos{0}});
  return m;
}

Planned auto_plan(const Program& program, const Machine& m, Bytes budget, int threads = 2,
                  std::uint64_t seed = 1, std::int64_t evaluations = 4000) {
  FixedWorkload workload(program);
  PlannerOptions options;
  options.seed = seed;
  options.evaluation_limit = evaluations;
  auto planned = make_plan(*make_auto(threads), workload, m, {budget, 0}, options);
  EXPECT_TRUE(planned) << planned.error().message;
  return std::move(*planned);
}

std::int64_t decided(const Strategy& strategy, Decision decision) {
  return std::count(strategy.gaps.begin(), strategy.gaps.end(), decision);
}

// An op takes 1 ms; its output takes as long at 1 GiB/s or so.
constexpr Nanos kAutoOp = std::chrono::milliseconds(1);
constexpr Bytes kAutoBudget = 10 * (1 << 20);

TEST(Auto, SwapsWhereTheLinkIsFast) {
  const Planned p = auto_plan(auto_chain(24, kAutoOp), auto_machine(8e9), kAutoBudget);
  EXPECT_GT(decided(p.lowered.strategy, Decision::swap), 8);
  EXPECT_EQ(decided(p.lowered.strategy, Decision::recompute), 0);
}

TEST(Auto, RecomputesWhereTheLinkIsSlow) {
  const Program program = auto_chain(24, kAutoOp);
  const Planned p = auto_plan(program, auto_machine(2e7), kAutoBudget);
  EXPECT_GT(decided(p.lowered.strategy, Decision::recompute), 8);
  EXPECT_EQ(decided(p.lowered.strategy, Decision::swap), 0);
  // No more than the forward pass once more.
  EXPECT_LE(p.lowered.iteration_time - 2 * 24 * kAutoOp, 24 * kAutoOp);
}

TEST(Auto, DoesBothWhereOneIsNotEnough) {
  const Program program = auto_chain(24, kAutoOp);
  const Planned p = auto_plan(program, auto_machine(3e8), kAutoBudget);
  EXPECT_GT(decided(p.lowered.strategy, Decision::recompute), 0);
  EXPECT_GT(decided(p.lowered.strategy, Decision::swap), 0);
}

// The fastest states of this program have no addresses, however they are looked for. One that is
// not much slower has: what ends with the fastest again and again takes eleven times the compute
// time.
TEST(Auto, PassesOverStatesThatHaveNoAddresses) {
  const auto text = read_file(TIDEPOOL_TEST_DATA "/no_addresses.json");
  ASSERT_TRUE(text);
  const auto program = read_json(*text, "no_addresses.json",
                                 [](const JsonCursor& j) { return program_from_json(j); });
  ASSERT_TRUE(program) << program.error().message;
  Machine m;
  m.set_links({13.2e9, Nanos{47'200}}, {12.2e9, Nanos{9'700}});
  for (Link& link : m.links) link.channel = 0;
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    const Planned p = auto_plan(*program, m, 131'515'385, 2, seed, 10'000);
    EXPECT_LT(p.lowered.iteration_time, 4 * p.lowered.compute_time) << seed;
  }
}

// Which of two searches by chance ends with less is no matter: they are one.
TEST(Auto, IsNeverSlowerThanTideWhereNothingMayRunAgain) {
  int stalls = 0;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    Program program = testing::random_program(seed, {.most_rounds = 1, .guards = false});
    for (Op& op : program.ops) op.recomputable = false;
    const Machine m = testing::random_machine(seed);
    const Bytes least = smallest_budget(program, m.alignment()).bytes;
    const Bytes peak = load_profile(program, AccessIndex(program), m.alignment(),
                                    least_workspace_algorithms(program))
                           .peak;
    const Bytes budget = least + (peak - least) / 4;
    FixedWorkload workload(program);
    PlannerOptions options;
    options.evaluation_limit = 2000;
    options.may.algorithms = false;
    const auto tide = make_plan(**make_planner("tide"), workload, m, {budget, 0}, options);
    const auto own = make_plan(*make_auto(2), workload, m, {budget, 0}, options);
    ASSERT_EQ(bool(tide), bool(own)) << seed;
    if (!tide) continue;
    EXPECT_LE(own->lowered.iteration_time, tide->lowered.iteration_time) << seed;
    stalls += own->lowered.iteration_time > own->lowered.compute_time ? 1 : 0;
  }
  EXPECT_GE(stalls, 2);
}

TEST(Auto, SwapsOnlyWhereNothingMayRunAgain) {
  Program program = auto_chain(24, kAutoOp);
  for (Op& op : program.ops) op.recomputable = false;
  const Planned p = auto_plan(program, auto_machine(2e7), kAutoBudget);
  EXPECT_EQ(decided(p.lowered.strategy, Decision::recompute), 0);
  EXPECT_GT(decided(p.lowered.strategy, Decision::swap), 8);
}

TEST(Auto, SwapsWeightsWhereNothingElseHelps) {
  using enum AccessMode;
  testing::ProgramBuilder b("weights");
  std::vector<TensorId> w;
  for (int i = 0; i < 6; ++i) w.push_back(b.tensor("w" + std::to_string(i), 1 << 20, true));
  for (int i = 0; i < 6; ++i) {
    b.device("step" + std::to_string(i), {{w[static_cast<std::size_t>(i)], update}}, kAutoOp);
  }
  const Planned p = auto_plan(b.build(), auto_machine(1e9), 2 << 20);
  EXPECT_GT(decided(p.lowered.strategy, Decision::swap), 3);
  EXPECT_LE(p.lowered.plan.device_bytes(), 2 << 20);
}

TEST(Auto, IsNeverSlowerThanAnyPlannerItStartsFrom) {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    const Program program = testing::random_program(seed, {5, 4096, 2});
    const Machine m = testing::random_machine(seed);
    const AccessIndex index(program);
    const Bytes peak =
        load_profile(program, index, m.alignment(), least_workspace_algorithms(program)).peak;
    const Bytes least = smallest_budget(program, m.alignment()).bytes;
    FixedWorkload workload(program);
    PlannerOptions options;
    options.evaluation_limit = 300;
    options.may.algorithms = seed % 2 == 0;
    const Budget budget{(least + peak) / 2, 0};
    const auto best = make_plan(*make_auto(), workload, m, budget, options);
    ASSERT_TRUE(best) << best.error().message;
    for (const PlannerInfo& info : planner_list()) {
      if (info.name == "auto" || info.name == "tide" || info.name == "random") continue;
      if (info.learns) continue;
      SCOPED_TRACE(std::string(info.name) + " " + std::to_string(seed));
      const auto other = make_plan(*info.make(), workload, m, budget, options);
      if (!other) continue;
      EXPECT_LE(best->lowered.iteration_time, other->lowered.iteration_time);
    }
  }
}

/// A chain with random sizes and times, in units; every op has a second algorithm, which is faster
/// and takes a workspace.
Program auto_choice_program(std::uint64_t seed, int length) {
  using enum AccessMode;
  constexpr Bytes kUnit = 64;
  Random random(seed);
  testing::ProgramBuilder b("choice");
  const auto units = [&](std::uint64_t most) { return static_cast<Bytes>(1 + random.below(most)); };
  const auto add = [&](const std::string& name, const std::vector<Access>& accesses) {
    const Nanos time = Nanos{64} * units(8);
    b.device(name, accesses, time);
    b.last().algorithms.push_back(
        {"fast", Nanos{time.count() * units(3) / 4}, kUnit * units(12), true});
  };
  std::vector<TensorId> x;
  for (int i = 0; i < length; ++i) {
    x.push_back(b.tensor("x" + std::to_string(i), kUnit * units(8)));
    std::vector<Access> accesses{{x.back(), write}};
    if (i > 0) accesses.push_back({x[static_cast<std::size_t>(i) - 1], read});
    add("forward" + std::to_string(i), accesses);
  }
  for (int i = length; i-- > 0;) {
    add("backward" + std::to_string(i), {{x[static_cast<std::size_t>(i)], read}});
  }
  return b.build();
}

/// The fastest of all choices of algorithms and of gaps that leave, by trying all with addresses.
Nanos fastest_of_all(const Program& program, const Machine& m, Bytes budget) {
  Lowering lowering(program, m);
  const std::size_t ops = program.ops.size();
  const std::size_t gaps = lowering.index().gaps().size();
  std::vector<std::pair<Nanos, Strategy>> all;
  for (std::size_t chosen = 0; chosen < std::size_t{1} << ops; ++chosen) {
    for (std::size_t away = 0; away < std::size_t{1} << gaps; ++away) {
      Strategy s = keep_everything(program, lowering.index(), {});
      for (std::size_t i = 0; i < ops; ++i) s.algorithms.push_back(chosen >> i & 1U);
      for (std::size_t g = 0; g < gaps; ++g) {
        if (away >> g & 1U) s.gaps[g] = Decision::swap;
      }
      const Evaluation e = lowering.evaluator().evaluate(s, {.load_limit = budget});
      if (e.feasible) all.emplace_back(e.iteration_time, std::move(s));
    }
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  Nanos fastest = Nanos::max();
  for (const auto& [time, strategy] : all) {
    if (time >= fastest) break;
    LowerOptions options;
    options.allow_streaming = false;
    if (const auto lowered = lowering.lower(strategy, {budget, 0}, options)) {
      fastest = std::min(fastest, lowered->iteration_time);
    }
  }
  return fastest;
}

TEST(Auto, FindsTheBestOfAllAlgorithmsAndSwapsOfTinyPrograms) {
  int faster_than_without = 0;
  int mixed = 0;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(seed);
    const Program program = auto_choice_program(seed, 3);
    const Machine m = testing::byte_a_nanosecond(64);
    const Bytes least = smallest_budget(program, 64).bytes;
    const Bytes budget = least + static_cast<Bytes>(seed % 4) * 192;
    FixedWorkload workload(program);
    PlannerOptions options;
    options.evaluation_limit = 4000;
    options.may.recompute = false;
    const auto planned = make_plan(*make_auto(2), workload, m, {budget, 0}, options);
    ASSERT_TRUE(planned) << planned.error().message;
    EXPECT_LE(planned->lowered.iteration_time, fastest_of_all(program, m, budget));
    const auto& chosen = planned->lowered.strategy.algorithms;
    mixed += chosen != least_workspace_algorithms(program) && chosen != fastest_algorithms(program);
    options.may.algorithms = false;
    const auto without = make_plan(*make_auto(2), workload, m, {budget, 0}, options);
    ASSERT_TRUE(without);
    EXPECT_EQ(without->lowered.strategy.algorithms, least_workspace_algorithms(program));
    EXPECT_LE(planned->lowered.iteration_time, without->lowered.iteration_time);
    faster_than_without += planned->lowered.iteration_time < without->lowered.iteration_time;
  }
  EXPECT_GT(faster_than_without, 6);
  EXPECT_GT(mixed, 2);
}

/// The chain of auto_chain; each op has an algorithm that takes half the time with a workspace, of
/// up to four values in turns.
Program auto_chain_with_workspaces() {
  Program program = auto_chain(12, kAutoOp);
  Bytes workspace = 0;
  for (Op& op : program.ops) {
    workspace = workspace % (4 << 20) + (1 << 20);
    op.algorithms.push_back({"fast", kAutoOp / 2, workspace, true});
  }
  return program;
}

TEST(Auto, TakesTheFastestAlgorithmsWhereTheyFitAndFewerWhereTheyDoNot) {
  const Program program = auto_chain_with_workspaces();
  const auto others = [&](Bytes budget) {
    const Planned p = auto_plan(program, auto_machine(8e9), budget);
    const auto& chosen = p.lowered.strategy.algorithms;
    return std::count(chosen.begin(), chosen.end(), 1);
  };
  EXPECT_EQ(others(64 << 20), 24);
  // Beside two values there is room for three more, not for four.
  const auto some = others(5 << 20);
  EXPECT_GT(some, 12);
  EXPECT_LT(some, 24);
  // Beside two values nothing; the first op has only one.
  EXPECT_EQ(others((5 << 20) / 2), 1);
}

TEST(Auto, SaysWhatItChoseAndWhatThatWasWorth) {
  const Planned p = auto_plan(auto_chain_with_workspaces(), auto_machine(8e9), 64 << 20);
  ASSERT_EQ(p.notes.size(), 2U);
  EXPECT_EQ(p.notes[1],
            "24 of 24 ops with another algorithm than least workspace (without: up to +100 %); "
            "percentages are of the iteration time, quick estimates by short searches");
}

/// With a budget of the whole batch's peak times this.
Result<Planned> plan_in_rounds(Planner& planner, testing::SubBatchWorkload& workload, double budget,
                               const MayDecide& may) {
  const Program whole = **workload.program(testing::SubBatchWorkload::kBatch);
  const Bytes peak = load_profile(whole, AccessIndex(whole), 64, fastest_algorithms(whole)).peak;
  PlannerOptions options;
  options.evaluation_limit = 1000;
  options.may = may;
  return make_plan(planner, workload, testing::byte_a_nanosecond(64),
                   {static_cast<Bytes>(budget * static_cast<double>(peak)), 0}, options);
}
Result<Planned> auto_plan_in_rounds(testing::SubBatchWorkload& workload, double budget,
                                    const MayDecide& may = {}) {
  return plan_in_rounds(*make_auto(2), workload, budget, may);
}

TEST(Auto, AsksForNoOtherSubBatchWhereTheUsualOneIsAsFastAsItCanBe) {
  testing::SubBatchWorkload workload;
  PlannerOptions options;
  options.evaluation_limit = 1000;
  // Inputs come at once.
  const auto planned =
      make_plan(*make_auto(2), workload, auto_machine(1e15), {1 << 20, 0}, options);
  ASSERT_TRUE(planned);
  EXPECT_EQ(planned->sub_batch(), 8);
  EXPECT_EQ(workload.asked().size(), 1U);
}

TEST(Auto, TakesSmallerRoundsWhereLittleFits) {
  testing::SubBatchWorkload workload;
  const auto planned = auto_plan_in_rounds(workload, 0.3);
  ASSERT_TRUE(planned) << planned.error().message;
  EXPECT_LT(planned->sub_batch(), 8);
  EXPECT_NE(planned->notes.back().find("of 8 (whole batch: "), std::string::npos)
      << planned->notes.back();
  MayDecide may;
  may.sub_batch = false;
  const auto whole = auto_plan_in_rounds(workload, 0.3, may);
  if (whole) {
    EXPECT_LT(planned->lowered.iteration_time, whole->lowered.iteration_time);
  }
}

/// In rounds of whatever size: moDNN decides addresses itself, so its plans count as they are.
TEST(Auto, IsNeverSlowerThanAPlannerThatChoosesItsSubBatch) {
  int others = 0;
  for (const double budget : {0.15, 0.2, 0.3, 0.5, 0.8, 1.2}) {
    testing::SubBatchWorkload workload;
    const auto planned = auto_plan_in_rounds(workload, budget);
    for (const PlannerInfo& info : planner_list()) {
      if (!info.chooses_sub_batch || info.name == "auto") continue;
      SCOPED_TRACE(std::string(info.name) + " " + std::to_string(budget));
      const auto other = plan_in_rounds(*info.make(), workload, budget, {});
      if (!other) continue;
      ASSERT_TRUE(planned) << planned.error().message;
      EXPECT_LE(planned->lowered.iteration_time, other->lowered.iteration_time);
      others += other->sub_batch() != 8 ? 1 : 0;
    }
  }
  EXPECT_GT(others, 2);
}

TEST(Auto, NamesTheSmallestBudgetOfAllSizes) {
  testing::SubBatchWorkload workload;
  const auto refused = auto_plan_in_rounds(workload, 0.001);
  ASSERT_FALSE(refused);
  ASSERT_TRUE(refused.error().smallest_feasible);
  const Bytes of_the_smallest = smallest_budget(**workload.program(1), 64).bytes;
  EXPECT_EQ(*refused.error().smallest_feasible, of_the_smallest);
}

TEST(Auto, IsTheSameOnAnyNumberOfThreads) {
  const Program program = auto_chain(16, kAutoOp);
  const Planned one = auto_plan(program, auto_machine(3e8), kAutoBudget / 2, 1);
  const Planned three = auto_plan(program, auto_machine(3e8), kAutoBudget / 2, 3);
  EXPECT_EQ(one.lowered.strategy.gaps, three.lowered.strategy.gaps);
  const Program choice = auto_choice_program(3, 8);
  const Bytes budget = smallest_budget(choice, 64).bytes * 3 / 2;
  const Planned two = auto_plan(choice, testing::byte_a_nanosecond(64), budget, 2);
  const Planned four = auto_plan(choice, testing::byte_a_nanosecond(64), budget, 4);
  EXPECT_EQ(two.lowered.strategy.gaps, four.lowered.strategy.gaps);
  EXPECT_EQ(two.lowered.strategy.algorithms, four.lowered.strategy.algorithms);
}

}  // namespace
}  // namespace tidepool
