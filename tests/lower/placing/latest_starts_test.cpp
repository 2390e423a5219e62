#include "lower/placing/latest_starts.h"

#include <gtest/gtest.h>

#include <map>

#include "ir/load_profile.h"
#include "lower/lower.h"
#include "support/random_program.h"

namespace tidepool {
namespace {

Step step(StepKind kind, StreamId stream, std::int32_t id, std::int64_t start,
          std::int64_t duration) {
  Step s;
  s.kind = kind;
  s.stream = stream;
  s.id = id;
  s.start = Nanos{start};
  s.duration = Nanos{duration};
  s.end = s.start + s.duration;
  return s;
}

/// Three ops of 100 ns; the copy of 50 ns that the third waits for is issued first.
std::vector<Step> one_copy_in() {
  std::vector<Step> steps{step(StepKind::copy_in, 2, 0, 0, 50), step(StepKind::op, 0, 0, 0, 100),
                          step(StepKind::op, 0, 1, 100, 100), step(StepKind::op, 0, 2, 200, 100)};
  steps[3].waits[2] = {0, 0};
  return steps;
}

TEST(LatestStarts, ACopyInMayStartSoThatItEndsWhenItsOpStarts) {
  const auto latest = latest_starts(one_copy_in(), Nanos{300});
  EXPECT_EQ(latest, (std::vector{Nanos{150}, Nanos{0}, Nanos{100}, Nanos{200}}));
}

TEST(LatestStarts, ACopyInLeavesTimeForTheOneBehindIt) {
  auto steps = one_copy_in();
  steps.insert(steps.begin() + 1, step(StepKind::copy_in, 2, 1, 50, 120));
  steps[4].waits[2] = {1, 0};
  const auto latest = latest_starts(steps, Nanos{300});
  EXPECT_EQ(latest[0], Nanos{30});
  EXPECT_EQ(latest[1], Nanos{80});
}

TEST(LatestStarts, WhatTheNextIterationWaitsForCountsAnIterationLater) {
  auto steps = one_copy_in();
  steps[3].waits[2] = {};
  steps[2].waits[2] = {0, -1};
  EXPECT_EQ(latest_starts(steps, Nanos{300})[0], Nanos{100 + 300 - 50});
}

TEST(ListCopiesInLate, BeforeTheOpThatIsNotOverAtTheLatestStart) {
  auto steps = one_copy_in();
  auto latest = latest_starts(steps, Nanos{300});
  list_copies_in_late(steps, latest);
  std::vector<std::int32_t> ops;
  for (const Step& s : steps) ops.push_back(s.kind == StepKind::op ? s.id : -1);
  EXPECT_EQ(ops, (std::vector<std::int32_t>{0, -1, 1, 2}));
  EXPECT_EQ(steps[3].waits[2].index, 1);
  EXPECT_EQ(latest[1], Nanos{150});
}

/// Timelines of random programs with everything away.
struct SteadyTimes {
  explicit SteadyTimes(std::uint64_t seed)
      : program(testing::random_program(seed)),
        machine(testing::random_machine(seed)),
        lowering(program, machine) {
    const auto algorithms = least_workspace_algorithms(program);
    const Bytes limit = smallest_budget(program, machine.alignment()).bytes * 3 / 2;
    const Evaluation e =
        lowering.evaluator().evaluate(lowering.everything_away(algorithms), {limit});
    feasible = e.feasible;
    if (!feasible) return;
    time = e.iteration_time;
    steps.assign(lowering.evaluator().steps().begin(), lowering.evaluator().steps().end());
  }
  Program program;
  Machine machine;
  Lowering lowering;
  bool feasible = false;
  Nanos time{};
  std::vector<Step> steps;
};

/// Whether each step starts after all it waits for, with the given starts in every iteration.
bool holds(const std::vector<Step>& steps, const std::vector<Nanos>& starts, Nanos time) {
  std::map<StreamId, std::vector<std::size_t>> streams;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    streams[steps[i].stream].push_back(i);
    for (const StepWait& wait : steps[i].waits) {
      if (wait.index == kNone) continue;
      const auto w = static_cast<std::size_t>(wait.index);
      if (starts[w] + steps[w].duration + wait.iteration * time > starts[i]) return false;
    }
  }
  for (const auto& [stream, list] : streams) {
    for (std::size_t k = 0; k < list.size(); ++k) {
      const bool last = k + 1 == list.size();
      const Nanos next = last ? starts[list[0]] + time : starts[list[k + 1]];
      if (starts[list[k]] + steps[list[k]].duration > next) return false;
    }
  }
  return true;
}

TEST(LatestStarts, OfRandomTimelinesCostNothingAndCannotBeLater) {
  int later = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    const SteadyTimes t(seed);
    if (!t.feasible) continue;
    auto latest = latest_starts(t.steps, t.time);
    ASSERT_TRUE(holds(t.steps, latest, t.time));
    for (std::size_t i = 0; i < t.steps.size(); ++i) {
      ASSERT_GE(latest[i], t.steps[i].start);
      if (t.steps[i].kind != StepKind::copy_in) {
        ASSERT_EQ(latest[i], t.steps[i].start);
        continue;
      }
      later += latest[i] > t.steps[i].start ? 1 : 0;
      latest[i] += Nanos{1};
      EXPECT_FALSE(holds(t.steps, latest, t.time));
      latest[i] -= Nanos{1};
    }
  }
  EXPECT_GT(later, 50);
}

TEST(ListCopiesInLate, KeepsStreamsWaitsAndTimes) {
  int moved = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    const SteadyTimes t(seed);
    if (!t.feasible) continue;
    auto steps = t.steps;
    auto latest = latest_starts(steps, t.time);
    list_copies_in_late(steps, latest);
    ASSERT_EQ(steps.size(), t.steps.size());
    EXPECT_TRUE(holds(steps, latest, t.time));
    const auto key = [](const Step& s) { return std::pair(s.kind, s.id); };
    std::map<StreamId, std::vector<std::pair<StepKind, std::int32_t>>> before;
    std::map<StreamId, std::vector<std::pair<StepKind, std::int32_t>>> after;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      before[t.steps[i].stream].push_back(key(t.steps[i]));
      after[steps[i].stream].push_back(key(steps[i]));
      moved += key(steps[i]) == key(t.steps[i]) ? 0 : 1;
      for (const StepWait& wait : steps[i].waits) {
        if (wait.index != kNone && wait.iteration == 0) {
          EXPECT_LT(wait.index, static_cast<std::int32_t>(i));
        }
      }
    }
    EXPECT_EQ(before, after);
    ReplayScratch scratch;
    EXPECT_EQ(replay(steps, StreamTable{}.compute, scratch), t.time);
  }
  EXPECT_GT(moved, 0);
}

}  // namespace
}  // namespace tidepool
