// What every planner keeps to, whatever it thinks: programs x budgets x seeds x machines. A planner
// joins by being in the list (src/planners/CMakeLists.txt).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <optional>

#include "check/check.h"
#include "planners/registry.h"
#include "planners/toolkit/wear.h"
#include "planning/make_plan.h"
#include "schedule/plan_totals.h"
#include "sim/simulate.h"
#include "support/attacks.h"
#include "support/homes.h"
#include "support/odd_program.h"
#include "support/repeatable.h"
#include "support/sanitized.h"
#include "support/spill_machine.h"
#include "support/sub_batch_workload.h"
#include "support/swap_programs.h"
#include "support/three_tiers.h"

namespace tidepool {
namespace {

/// Not the largest: each is planned by each planner, often.
constexpr testing::RandomShape kShape{5, 4096, 2};

/// Of each kind of subject.
std::uint64_t seeds() { return testing::some<std::uint64_t>(testing::usual_or(2, 1), 6); }
/// Where a subject has few budgets.
std::uint64_t many_seeds() {
  return testing::some<std::uint64_t>(testing::kThreadSanitizer ? 1 : testing::usual_or(4, 2), 6);
}

/// A workload and a machine it fits.
struct ConformanceSubject {
  std::string name;
  std::unique_ptr<Workload> workload;
  Machine machine;
  std::optional<std::uint64_t> seed{};  ///< where there are others of the kind

  /// Where there may be several of the kind one has every second of the list, the next the others.
  template <class T>
  [[nodiscard]] std::vector<T> share_of(const std::vector<T>& list) const {
    return testing::in_turn(list, seed.value_or(0), seed ? 2 : 1);
  }
  [[nodiscard]] const Program& program() const {
    return **workload->program(workload->sub_batch());
  }
  [[nodiscard]] Bytes least() const {
    return smallest_budget(program(), machine.alignment()).bytes;
  }
  /// With nothing away; addresses may need a little more.
  [[nodiscard]] Bytes peak() const {
    const AccessIndex index(program());
    return load_profile(program(), index, machine.alignment(),
                        least_workspace_algorithms(program()))
        .peak;
  }
};

Machine half_duplex(Machine machine) {
  machine.set_duplex(false);
  return machine;
}

std::vector<ConformanceSubject> subjects() {
  std::vector<ConformanceSubject> all;
  std::optional<std::uint64_t> seed;
  const auto add = [&](std::string name, Program program, Machine machine) {
    all.push_back({std::move(name), std::make_unique<FixedWorkload>(std::move(program)),
                   std::move(machine), seed});
  };
  for (std::uint64_t s = 0; s < seeds(); ++s) {
    seed = s;
    add(fmt::format("random {}", s), testing::random_program(s, kShape),
        testing::random_machine(s));
    add(fmt::format("random with a file {}", s), testing::random_program(s, kShape),
        testing::with_random_file(testing::random_machine(s), s));
    add(fmt::format("odd with a file {}", s), testing::odd_program(s, testing::HostUse::plain),
        testing::with_random_file(testing::byte_a_nanosecond(8), s));
    add(fmt::format("random at home {}", s),
        testing::with_homes(testing::random_program(s, kShape), s), testing::random_machine(s));
    add(fmt::format("odd at home {}", s),
        testing::with_homes(testing::odd_program(s, testing::HostUse::plain), s),
        testing::with_random_file(testing::byte_a_nanosecond(8), s));
    add(fmt::format("large {}", s), testing::large_program(s, kShape),
        testing::random_machine(s + 100));
    add(fmt::format("odd {}", s), testing::odd_program(s, testing::HostUse::plain),
        testing::byte_a_nanosecond(8));
    add(fmt::format("odd without host {}", s), testing::odd_program(s, testing::HostUse::none),
        half_duplex(testing::byte_a_nanosecond(8)));
  }
  seed.reset();
  add("swap example", testing::SwapExample::make(), testing::two_mib_a_ms());
  add("tiny training", testing::tiny_training(), testing::byte_a_nanosecond(64));
  all.push_back({"sub-batches", std::make_unique<testing::SubBatchWorkload>(),
                 testing::byte_a_nanosecond(64)});
  return all;
}

class PlannerConformance : public ::testing::TestWithParam<PlannerInfo> {
 protected:
  static std::int64_t evaluations() { return testing::some(testing::usual_or(60, 50), 300); }
  [[nodiscard]] static Result<Planned> plan(const PlannerInfo& info, ConformanceSubject& subject,
                                            const Budget& budget, const PlannerOptions& options) {
    return make_plan(*info.make(), *subject.workload, subject.machine, budget, options);
  }
  static PlannerOptions repeatable(std::uint64_t seed) {
    return testing::repeatable(seed, evaluations(), GetParam().name);
  }
  [[nodiscard]] static Result<Planned> plan(ConformanceSubject& subject, Bytes budget,
                                            const PlannerOptions& options) {
    return plan(GetParam(), subject, {budget, 0}, options);
  }
  static const PlannerInfo* find(std::string_view name) {
    for (const PlannerInfo& info : planner_list()) {
      if (info.name == name) return &info;
    }
    return nullptr;
  }
};

/// The proof with everything anew: program, budget and alignment as the test has them.
void expect_proved_inside(const Planned& planned, ConformanceSubject& subject,
                          const Budget& budget) {
  const auto program = subject.workload->program(planned.sub_batch());
  ASSERT_TRUE(program) << program.error().message;
  const auto proof = check(**program, planned.lowered.plan, check_limits(subject.machine, budget));
  EXPECT_TRUE(proof) << proof.error().message;
  EXPECT_LE(planned.lowered.plan.device_bytes(), budget.device);
  EXPECT_EQ(planned.lowered.strategy.algorithms.size(), (*program)->ops.size());
  const Simulation simulated = simulate(**program, planned.lowered.plan, subject.machine, 8);
  EXPECT_EQ(simulated.iteration_time, planned.lowered.iteration_time);
}

TEST_P(PlannerConformance, PlansAreProvedAndInsideTheBudget) {
  int planned_for = 0;
  // On machines with a file: plans that swap, and plans that use the file.
  int swap = 0, use_file = 0;
  for (ConformanceSubject& subject : subjects()) {
    const Bytes least = subject.least();
    const Bytes peak = std::max(subject.peak(), least);
    for (const Bytes budget :
         subject.share_of<Bytes>({least, (least + peak) / 2, peak, 4 * peak})) {
      SCOPED_TRACE(fmt::format("{} in {} B", subject.name, budget));
      const auto planned = plan(subject, budget, repeatable(1));
      if (!planned) {
        EXPECT_EQ(planned.error().code, ErrorCode::infeasible) << planned.error().message;
        EXPECT_FALSE(GetParam().meets_every_budget) << planned.error().message;
        EXPECT_LT(budget, 4 * peak);
        continue;
      }
      ++planned_for;
      EXPECT_EQ(planned->lowered.plan.planner, GetParam().name);
      EXPECT_EQ(planned->lowered.strategy.planner, GetParam().name);
      expect_proved_inside(*planned, subject, {budget, 0});
      const SpaceId away = subject.machine.away();
      if (subject.machine.spaces[static_cast<std::size_t>(away)].kind != SpaceKind::file) continue;
      const auto& gaps = planned->lowered.strategy.gaps;
      swap += static_cast<int>(std::count(gaps.begin(), gaps.end(), Decision::swap) > 0);
      const auto& arenas = planned->lowered.plan.arenas;
      use_file += static_cast<int>(arenas[static_cast<std::size_t>(away)].bytes > 0);
    }
  }
  EXPECT_GT(planned_for, 0);
  EXPECT_EQ(use_file > 0, swap > 0) << swap << " swap, " << use_file << " use the file";
}

/// That the proof would tell is shown by a plan of the same program without homes.
TEST_P(PlannerConformance, WhatHasItsHomeOnTheDeviceIsThereBetweenIterations) {
  int caught = 0;
  for (std::uint64_t seed = 0; seed < many_seeds(); ++seed) {
    SCOPED_TRACE(seed);
    const Program program = testing::with_homes(testing::random_program(seed, kShape), seed);
    ConformanceSubject subject{"", std::make_unique<FixedWorkload>(program),
                               testing::random_machine(seed)};
    const Budget budget{(subject.least() + subject.peak()) / 2, 0};
    if (const auto planned = plan(subject, budget.device, repeatable(1))) {
      expect_proved_inside(*planned, subject, budget);
      const Plan& made = planned->lowered.plan;
      for (TensorId t = 0; t < std::ssize(program.tensors); ++t) {
        if (program.tensors[t].home == Home::anywhere) continue;
        EXPECT_TRUE(std::ranges::any_of(made.boundary, [&](PlacementId id) {
          return made.placements[id].tensor == t && made.kind_of(id) == SpaceKind::device;
        })) << program.tensors[t].name;
      }
    }
    const Program unaware = testing::without_homes(program);
    Lowering lowering(unaware, subject.machine);
    const auto away =
        lowering.lower(lowering.everything_away(least_workspace_algorithms(unaware)), budget);
    ASSERT_TRUE(away) << away.error().message;
    const auto refused = check(program, away->plan, check_limits(subject.machine, budget));
    caught += !refused && refused.error().message.find("(7) ") != std::string::npos;
  }
  EXPECT_GT(caught, 0);
}

TEST_P(PlannerConformance, AHostBudgetHolds) {
  for (std::uint64_t seed = 0; seed < many_seeds(); ++seed) {
    SCOPED_TRACE(seed);
    ConformanceSubject subject{
        "", std::make_unique<FixedWorkload>(testing::random_program(seed, kShape)),
        testing::random_machine(seed)};
    const Bytes device = subject.least() * 3 / 2;
    const auto free = plan(subject, device, repeatable(1));
    if (!free) continue;
    for (const Bytes host :
         {free->lowered.plan.host_bytes(), free->lowered.plan.host_bytes() / 2}) {
      if (host == 0) continue;
      const Budget budget{device, host};
      const auto planned = plan(GetParam(), subject, budget, repeatable(1));
      if (!planned) {
        EXPECT_EQ(planned.error().code, ErrorCode::infeasible);
        continue;
      }
      EXPECT_LE(planned->lowered.plan.host_bytes(), host);
      expect_proved_inside(*planned, subject, budget);
    }
  }
}

TEST_P(PlannerConformance, ABudgetOfTheFileHolds) {
  for (std::uint64_t seed = 0; seed < many_seeds(); ++seed) {
    SCOPED_TRACE(seed);
    ConformanceSubject subject{
        "", std::make_unique<FixedWorkload>(testing::random_program(seed, kShape)),
        testing::with_random_file(testing::random_machine(seed), seed)};
    const SpaceId file = subject.machine.away();
    const Bytes device = subject.least() * 3 / 2;
    const auto bytes_of = [file](const Planned& planned) {
      return planned.lowered.plan.arenas[static_cast<std::size_t>(file)].bytes;
    };
    const auto free = plan(subject, device, repeatable(1));
    if (!free) continue;
    for (const Bytes bytes : {bytes_of(*free), bytes_of(*free) / 2}) {
      if (bytes == 0) continue;
      const Budget budget{device, 0, {{file, bytes}}};
      const auto planned = plan(GetParam(), subject, budget, repeatable(1));
      if (!planned) {
        EXPECT_EQ(planned.error().code, ErrorCode::infeasible) << planned.error().message;
        continue;
      }
      EXPECT_LE(bytes_of(*planned), bytes);
      expect_proved_inside(*planned, subject, budget);
    }
  }
}

/// Programs over a device, its host and a file behind the host.
std::vector<ConformanceSubject> subjects_of_three_tiers() {
  std::vector<ConformanceSubject> all;
  const auto add = [&](std::string name, Program program, const Machine& machine,
                       std::uint64_t seed) {
    all.push_back({std::move(name), std::make_unique<FixedWorkload>(std::move(program)),
                   testing::with_random_tier(machine, seed)});
  };
  for (std::uint64_t seed = 0; seed < testing::usual_or<std::uint64_t>(2, 1); ++seed) {
    const bool at_home = seed % 2 == 1;
    if (!at_home || testing::thorough()) {
      add(fmt::format("random {}", seed), testing::random_program(seed, kShape),
          testing::random_machine(seed), seed);
    }
    if (at_home || testing::kSanitized || testing::thorough()) {
      add(fmt::format("random at home {}", seed),
          testing::with_homes(testing::random_program(seed, kShape), seed),
          testing::random_machine(seed), seed);
    }
    add(fmt::format("odd {}", seed), testing::odd_program(seed, testing::HostUse::plain),
        testing::byte_a_nanosecond(8), seed);
  }
  return all;
}

TEST_P(PlannerConformance, AHostBudgetHoldsWithAFileBehindTheHost) {
  int away = 0, in_file = 0;
  for (ConformanceSubject& subject : subjects_of_three_tiers()) {
    const Bytes device = subject.least() * 3 / 2;
    const auto free = plan(subject, device, repeatable(1));
    if (!free) continue;
    const Bytes needed = free->lowered.plan.host_bytes();
    for (const Bytes host : {needed, needed / 3}) {
      if (host == 0) continue;
      SCOPED_TRACE(fmt::format("{} in {} and {} B of the host", subject.name, device, host));
      const Budget budget{device, host};
      const auto planned = plan(GetParam(), subject, budget, repeatable(1));
      if (!planned) {
        EXPECT_EQ(planned.error().code, ErrorCode::infeasible) << planned.error().message;
        EXPECT_LT(host, needed);
        continue;
      }
      const Plan& made = planned->lowered.plan;
      EXPECT_LE(made.host_bytes(), host);
      const Program& program = **subject.workload->program(planned->sub_batch());
      const auto proof = check(program, made, check_limits(subject.machine, budget));
      EXPECT_TRUE(proof) << proof.error().message;
      EXPECT_EQ(long_run(program, made, subject.machine).iteration_time,
                planned->lowered.iteration_time);
      away += static_cast<int>(host < needed);
      in_file += static_cast<int>(made.arenas[2].bytes > 0);
      if (host < needed) continue;
      EXPECT_EQ(made.arenas[2].bytes, 0);
      EXPECT_EQ(planned->lowered.iteration_time, free->lowered.iteration_time);
    }
  }
  // What moves nothing cannot do with less.
  EXPECT_TRUE(away > 0 || !GetParam().meets_every_budget);
  EXPECT_EQ(in_file > 0, away > 0);
}

TEST_P(PlannerConformance, TheSeedDecidesTheResult) {
  for (ConformanceSubject& subject : subjects()) {
    const Bytes budget = (subject.least() + subject.peak()) / 2 + subject.machine.alignment();
    for (const std::uint64_t seed : subject.share_of<std::uint64_t>({1, 7})) {
      SCOPED_TRACE(fmt::format("{}, seed {}", subject.name, seed));
      const auto first = plan(subject, budget, repeatable(seed));
      const auto again = plan(subject, budget, repeatable(seed));
      ASSERT_EQ(first.has_value(), again.has_value());
      if (!first) {
        EXPECT_EQ(first.error().smallest_feasible, again.error().smallest_feasible);
        continue;
      }
      const Strategy& a = first->lowered.strategy;
      const Strategy& b = again->lowered.strategy;
      EXPECT_EQ(a.gaps, b.gaps);
      EXPECT_EQ(a.algorithms, b.algorithms);
      EXPECT_EQ(a.sub_batch, b.sub_batch);
      EXPECT_EQ(first->lowered.iteration_time, again->lowered.iteration_time);
      EXPECT_EQ(first->lowered.plan.device_bytes(), again->lowered.plan.device_bytes());
      EXPECT_EQ(first->notes, again->notes);
    }
  }
}

/// One that does not end runs into the time limit of tests: no clock is read here.
TEST_P(PlannerConformance, EndsSoonAfterAStopRequest) {
  const Program program = testing::large_program(4);
  for (const int asked_before : {0, 1, 20}) {
    SCOPED_TRACE(asked_before);
    ConformanceSubject subject{"", std::make_unique<FixedWorkload>(program),
                               testing::random_machine(4)};
    std::atomic<int> asked{0};
    PlannerOptions options;
    options.time_limit = std::chrono::hours(24);
    options.stop = [&] { return asked++ >= asked_before; };
    const auto planned = plan(subject, subject.least() * 5 / 4, options);
    if (!planned) {
      EXPECT_TRUE(planned.error().code == ErrorCode::interrupted ||
                  planned.error().code == ErrorCode::infeasible)
          << planned.error().message;
    }
  }
}

TEST_P(PlannerConformance, IsNeverWorseThanWhatItStartsFrom) {
  if (GetParam().starts_from.empty()) GTEST_SKIP() << "starts from nothing";
  const PlannerInfo* other = find(GetParam().starts_from);
  ASSERT_NE(other, nullptr) << GetParam().starts_from;
  for (ConformanceSubject& subject : subjects()) {
    for (const Bytes budget : {subject.least(), (subject.least() + subject.peak()) / 2}) {
      SCOPED_TRACE(fmt::format("{} in {} B", subject.name, budget));
      const auto planned = plan(subject, budget, repeatable(3));
      const auto start =
          plan(*other, subject, {budget, 0}, testing::repeatable(3, evaluations(), other->name));
      if (!start) continue;
      ASSERT_TRUE(planned) << planned.error().message;
      const Nanos before = start->lowered.iteration_time;
      const Nanos now = planned->lowered.iteration_time;
      EXPECT_LE(now, leaves_to_file(subject.machine) ? as_fast_as(before) : before);
      if (now <= before) continue;
      EXPECT_LT(written_to_files(planned->lowered.plan), written_to_files(start->lowered.plan));
    }
  }
}

TEST_P(PlannerConformance, AnInfeasibleBudgetIsRefusedWithTheSmallestFeasibleOne) {
  for (ConformanceSubject& subject : subjects()) {
    // With smaller rounds less could do.
    if (subject.workload->sub_batches().size() > 1) continue;
    SCOPED_TRACE(subject.name);
    const Bytes least = subject.least();
    const auto refused = plan(subject, least - 1, repeatable(1));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::infeasible) << refused.error().message;
    ASSERT_TRUE(refused.error().smallest_feasible);
    const Bytes named = *refused.error().smallest_feasible;
    if (GetParam().meets_every_budget) {
      EXPECT_EQ(named, least);
    }
    const auto planned = plan(subject, named, repeatable(1));
    ASSERT_TRUE(planned) << planned.error().message;
    expect_proved_inside(*planned, subject, {named, 0});
  }
}

/// Another planner would be refused by `make_plan`, so that the result would be an error.
TEST_P(PlannerConformance, DecidesOnlyWhatItMay) {
  const std::vector<std::pair<const char*, std::function<void(MayDecide&)>>> kForbidden{
      {"sub-batch", [](MayDecide& may) { may.sub_batch = false; }},
      {"algorithms", [](MayDecide& may) { may.algorithms = false; }},
      {"swap", [](MayDecide& may) { may.swap = false; }},
      {"recompute", [](MayDecide& may) { may.recompute = false; }},
  };
  for (ConformanceSubject& subject : subjects()) {
    for (const auto& [what, forbid] : subject.share_of(kForbidden)) {
      SCOPED_TRACE(fmt::format("{} without {}", subject.name, what));
      PlannerOptions options = repeatable(2);
      forbid(options.may);
      const auto planned = plan(subject, (subject.least() + subject.peak()) / 2, options);
      if (!planned) {
        EXPECT_EQ(planned.error().code, ErrorCode::infeasible) << planned.error().message;
      }
    }
  }
}

/// All; for the thread sanitizer, under which they take ten times as long, those with threads.
std::vector<PlannerInfo> tried_planners() {
  std::vector<PlannerInfo> tried;
  for (const PlannerInfo& info : planner_list()) {
    const bool has_threads = info.name == "auto" || info.name == "tide" || info.name == "home";
    if (has_threads || !testing::kThreadSanitizer) tried.push_back(info);
  }
  return tried;
}

INSTANTIATE_TEST_SUITE_P(, PlannerConformance, ::testing::ValuesIn(tried_planners()),
                         [](const auto& planner) {
                           std::string name(planner.param.name);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace tidepool
