// Lists whose long run takes many iterations to begin, or repeats in groups; and random ones beside
// plain repetition.
#include <gtest/gtest.h>

#include "base/at.h"
#include "base/random.h"
#include "lower/evaluate.h"
#include "support/attacks.h"

namespace tidepool {
namespace {

Step step(StreamId stream, int duration) {
  Step s;
  s.stream = stream;
  s.duration = Nanos{duration};
  return s;
}

/// Ends of the compute stream, iteration after iteration, with nothing clever.
std::vector<Nanos> compute_ends(std::span<const Step> steps, StreamId compute, int iterations) {
  std::vector<Nanos> result;
  std::vector<Nanos> previous(steps.size());
  std::vector<Nanos> ends(steps.size());
  std::array<Nanos, kMaxStreams> ready{};
  for (int iteration = 0; iteration < iterations; ++iteration) {
    for (std::size_t i = 0; i < steps.size(); ++i) {
      Nanos start = ready[at(steps[i].stream)];
      for (const StepWait& w : steps[i].waits) {
        if (w.index == kNone || (w.iteration != 0 && iteration == 0)) continue;
        start = std::max(start, w.iteration == 0 ? ends[at(w.index)] : previous[at(w.index)]);
      }
      ready[at(steps[i].stream)] = ends[i] = start + steps[i].duration;
    }
    std::swap(previous, ends);
    result.push_back(ready[at(compute)]);
  }
  return result;
}

// Copies that take 1 ns an iteration more than compute does fall behind until somebody waits.
TEST(Replay, AStreamThatFallsBehindSlowlySetsThePaceInTheEnd) {
  std::vector<Step> steps{step(0, 100'000), step(1, 100'001), step(0, 0)};
  steps[0].waits[1] = {1, -1};
  ReplayScratch scratch;
  EXPECT_EQ(replay(steps, 0, scratch), Nanos{100'001});

  // The same where two streams wait for each other in turns.
  steps = {step(0, 99'000), step(1, 60'000), step(2, 40'001), step(0, 1'000)};
  steps[1].waits[2] = {2, -1};
  steps[2].waits[1] = {1, 0};
  steps[3].waits[2] = {2, -1};
  EXPECT_EQ(replay(steps, 0, scratch), Nanos{100'001});
}

TEST(Replay, NoTransientIsTooLong) {
  // The copies are 90 us ahead of need at first and lose 1 ns an iteration.
  std::vector<Step> steps{step(2, 90'000), step(0, 100'000), step(1, 100'001)};
  steps[1].waits[2] = {0, 0};
  steps[1].waits[1] = {2, -1};
  const std::vector<Nanos> ends = compute_ends(steps, 0, 1001);
  EXPECT_EQ(ends[1000] - ends[999], Nanos{100'000});
  ReplayScratch scratch;
  EXPECT_EQ(replay(steps, 0, scratch), Nanos{100'001});
}

TEST(Replay, IterationsThatRepeatInGroupsOfTwoTakeTheirMean) {
  // A, then B, then C of the next iteration, then A of the one behind it: 11 ns in two iterations,
  // in steps of 5 and 6.
  std::vector<Step> steps{step(1, 5), step(2, 5), step(3, 1), step(0, 1)};
  steps[0].waits[3] = {2, -1};
  steps[1].waits[1] = {0, 0};
  steps[2].waits[2] = {1, -1};
  steps[3].waits[1] = {0, 0};
  const std::vector<Nanos> ends = compute_ends(steps, 0, 1001);
  EXPECT_EQ(ends[1000] - ends[998], Nanos{11});
  EXPECT_NE(ends[1000] - ends[999], ends[999] - ends[998]);
  ReplayScratch scratch;
  EXPECT_EQ(replay(steps, 0, scratch), Nanos{6}) << "5.5, rounded";
}

TEST(Replay, AStreamNobodyWaitsForMayFallBehindForEver) {
  std::vector<Step> steps{step(0, 10), step(1, 11)};
  ReplayScratch scratch;
  EXPECT_EQ(replay(steps, 0, scratch), Nanos{10});
}

// It stopped after 24 iterations without a word.
TEST(Replay, OfRandomListsIsTheMeanOfTheLongRun) {
  int slow = 0;
  int groups = 0;
  for (std::uint64_t seed = 0; seed < testing::attacks(1500); ++seed) {
    Random random(seed);
    std::vector<Step> steps;
    const auto count = static_cast<std::int32_t>(3 + random.below(8));
    const std::uint64_t longest = random.below(2) == 0 ? 8 : 400;
    for (std::int32_t i = 0; i < count; ++i) {
      const auto stream = static_cast<StreamId>(i == 0 ? 0 : random.below(4));
      steps.push_back(step(stream, static_cast<int>(1 + random.below(longest))));
    }
    for (std::int32_t i = 0; i < count; ++i) {
      for (std::uint64_t k = 0; k < 1 + random.below(2); ++k) {
        const auto to = static_cast<std::int32_t>(random.below(at(count)));
        const StreamId stream = steps[at(to)].stream;
        if (stream == steps[at(i)].stream) continue;
        const bool before = to < i && random.below(2) == 0;
        steps[at(i)].waits[at(stream)] = {to, before ? 0 : -1};
      }
    }
    constexpr int kGroups = 5040;  // divided by every period that can be
    constexpr int kIterations = 12'000;
    const std::vector<Nanos> ends = compute_ends(steps, 0, kIterations);
    const Nanos long_run = ends[kIterations - 1] - ends[kIterations - 1 - kGroups];
    ReplayScratch scratch;
    ASSERT_EQ(replay(steps, 0, scratch), (long_run + Nanos{kGroups / 2}) / kGroups) << seed;
    slow += (ends[24] - ends[23]) * kGroups != long_run ? 1 : 0;
    groups += long_run % kGroups != Nanos{0} ? 1 : 0;
  }
  // Both happen, or the test says little.
  EXPECT_GE(slow, 2);
  EXPECT_GE(groups, 1);
}

// Random lists, as steps of a schedule: the same numbers.
TEST(Replay, StepsOfAScheduleAreReplayedAlike) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    std::vector<Step> steps;
    std::vector<ScheduledStep> scheduled;
    for (int i = 0; i < 12; ++i) {
      steps.push_back(step(static_cast<StreamId>(random.below(kMaxStreams)),
                           static_cast<int>(random.below(50))));
      for (StreamId s = 0; s < kMaxStreams; ++s) {
        if (random.below(3) > 0 || s == steps.back().stream) continue;
        const auto of = static_cast<std::int32_t>(random.below(12));
        steps.back().waits[at(s)] = {of, of < i ? 0 : -1};
      }
      ScheduledStep& same = scheduled.emplace_back();
      same.stream = steps.back().stream;
      same.duration = steps.back().duration;
      same.waits.assign(steps.back().waits.begin(), steps.back().waits.end());
    }
    ReplayScratch scratch;
    EXPECT_EQ(replay(std::span(steps), 0, scratch), replay(std::span(scheduled), 0, scratch));
    for (std::size_t i = 0; i < steps.size(); ++i) EXPECT_EQ(steps[i].end, scheduled[i].end);
  }
}

/// Ends of compute where steps begin late, iteration after iteration.
std::vector<Nanos> late_ends(std::span<const ScheduledStep> steps, int iterations) {
  std::vector<Nanos> result;
  std::vector<Nanos> previous(steps.size());
  std::vector<Nanos> ends(steps.size());
  std::array<Nanos, kMaxStreams> ready{};
  for (int k = 0; k < iterations; ++k) {
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const ScheduledStep& step = steps[i];
      Nanos start = ready[at(step.stream)] + step.late.next;
      for (const StepWait& w : step.waits) {
        if (w.iteration != 0 && k == 0) continue;
        const Nanos end = w.iteration == 0 ? ends[at(w.index)] : previous[at(w.index)];
        start = std::max(start, end + step.late.woken);
      }
      ready[at(step.stream)] = ends[i] = start + step.duration;
    }
    std::swap(previous, ends);
    result.push_back(ready[0]);
  }
  return result;
}

TEST(Replay, StepsThatBeginLateTakeTheMeanOfTheirLongRun) {
  int later = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    std::vector<ScheduledStep> steps(10);
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (i > 0) steps[i].stream = static_cast<StreamId>(random.below(3));
      steps[i].duration = Nanos{static_cast<int>(random.below(50))};
      const auto of = static_cast<std::int32_t>(random.below(steps.size()));
      if (random.below(2) > 0) steps[i].waits.push_back({of, at(of) < i ? 0 : -1});
    }
    ReplayScratch scratch;
    const Nanos at_once = replay(std::span(steps), 0, scratch);
    for (ScheduledStep& step : steps) step.late = {Nanos{1 + step.stream.value()}, Nanos{7}};
    const Nanos late = replay(std::span(steps), 0, scratch);
    const std::vector<Nanos> ends = late_ends(steps, 6000);
    EXPECT_NEAR(to_seconds(late), to_seconds(ends[5999] - ends[2999]) / 3000, 1e-9);
    later += late > at_once ? 1 : 0;
  }
  EXPECT_EQ(later, 100);
}

}  // namespace
}  // namespace tidepool
