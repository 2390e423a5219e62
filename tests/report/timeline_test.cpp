#include "report/timeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/at.h"
#include "check/check.h"
#include "report/plan_files.h"
#include "sim/simulate.h"

namespace tidepool {
namespace {

using ::testing::ElementsAre;

Interval interval(int start, int end) { return {Nanos{start}, Nanos{end}}; }

bool meet(const Interval& a, const Interval& b) { return a.start < b.end && b.start < a.end; }

bool meet(const Interval& a, const Interval& b, Nanos period) {
  for (const Interval& x : pieces(a, period)) {
    for (const Interval& y : pieces(b, period)) {
      if (meet(x, y)) return true;
    }
  }
  return false;
}

/// Whether every instant of `inner` is in `outer`, both of one repeating picture.
bool covers(const Interval& outer, const Interval& inner, Nanos period) {
  const bool directly = outer.start <= inner.start && inner.end <= outer.end;
  const bool a_period_later =
      outer.start <= inner.start + period && inner.end + period <= outer.end;
  return directly || a_period_later;
}

Bytes live_bytes(const PlanTimeline& t, const PlanFile& file, Nanos time) {
  Bytes sum = 0;
  for (const DrawnLife& s : t.lives) {
    for (const Interval& piece : pieces(s.time, t.period)) {
      if (piece.start <= time && time < piece.end)
        sum += align_up(s.bytes, file.plan.arenas[0].alignment);
    }
  }
  return sum;
}

TEST(PlanTimeline, PiecesAreOnThePicture) {
  EXPECT_THAT(pieces(interval(3, 10), Nanos{10}), ElementsAre(interval(3, 10)));
  EXPECT_THAT(pieces(interval(3, 12), Nanos{10}), ElementsAre(interval(3, 10), interval(0, 2)));
}

TEST(PlanTimeline, WhatPassesTheEndOfAnIterationIsShownAtItsBeginning) {
  const PlanFile file = testing::copy_across_the_end();
  const PlanTimeline t = make_timeline(file);
  EXPECT_TRUE(t.periodic);
  EXPECT_EQ(t.period, Nanos{60});
  ASSERT_EQ(t.runs.size(), 3U);
  EXPECT_EQ(t.runs[0].time, interval(30, 40));
  EXPECT_EQ(t.runs[1].time, interval(40, 90));
  EXPECT_EQ(t.runs[1].kind, RunKind::copy_out);
  EXPECT_EQ(t.runs[2].time, interval(40, 60));

  EXPECT_EQ(t.runs[0].idle, Nanos{30});
  EXPECT_EQ(idle_before(t.runs[0], t.period), interval(0, 30));
  EXPECT_EQ(t.runs[0].waits_for, 1);
  EXPECT_TRUE(t.runs[0].waits_for_previous);
  EXPECT_EQ(t.runs[2].idle, Nanos{0});

  ASSERT_EQ(t.lives.size(), 2U);
  EXPECT_EQ(t.lives[0].time, interval(30, 90)) << "x lives until it is copied";
  EXPECT_EQ(t.lives[1].time, interval(40, 60));

  ASSERT_EQ(t.load.size(), 3U);
  EXPECT_EQ(t.load[0].time, Nanos{0});
  EXPECT_EQ(t.load[0].total(), 50);
  EXPECT_EQ(t.load[1].time, Nanos{30}) << "one x ends, the next begins";
  EXPECT_EQ(t.load[1].total(), 50);
  EXPECT_EQ(t.load[2].time, Nanos{40});
  EXPECT_EQ(t.load[2].total(), 58);
  EXPECT_EQ(t.peak_load, 58);

  ASSERT_EQ(t.lanes.size(), 2U);
  EXPECT_EQ(t.lanes[0].name, "compute");
  EXPECT_EQ(t.lanes[0].busy, Nanos{30});
  EXPECT_EQ(t.lanes[1].name, "copy out");
  EXPECT_EQ(t.lanes[1].busy, Nanos{50});
}

TEST(PlanTimeline, IdleTimeBeforeTheBeginningLiesAtTheEnd) {
  tidepool::Run run;
  run.time = interval(2, 5);
  run.idle = Nanos{4};
  EXPECT_EQ(idle_before(run, Nanos{10}), interval(8, 12));
}

class RandomTimelines : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    auto plan = testing::random_plan(static_cast<std::uint64_t>(GetParam()));
    ASSERT_TRUE(plan.has_value());
    load_limit_ = plan->lowered.load_limit;
    file_ = testing::file_of(std::move(*plan));
    ASSERT_TRUE(check(file_.program, file_.plan, {file_.device_budget, file_.host_budget}));
    t_ = make_timeline(file_);
  }

  PlanFile file_;
  Bytes load_limit_ = 0;
  PlanTimeline t_;
};

TEST_P(RandomTimelines, TheIterationIsTheSimulatedOne) {
  const Simulation s = simulate(file_.program, file_.plan, file_.machine, 32);
  EXPECT_EQ(t_.period, s.iteration_time);
  ASSERT_EQ(t_.runs.size(), file_.plan.steady.instructions.size());
  const Nanos begin = s.iteration_end[s.iteration_end.size() - 2];
  for (std::size_t i = 0; i < t_.runs.size(); ++i) {
    const Interval time = t_.runs[i].time;
    EXPECT_GE(time.start, Nanos{0});
    EXPECT_LT(time.start, t_.period);
    EXPECT_LE(time.end - time.start, t_.period);
    const Span span = s.iterations.back()[i];
    EXPECT_EQ((span.start - begin - time.start) % t_.period, Nanos{0});
    EXPECT_EQ(span.end - span.start, time.end - time.start);
  }
}

TEST_P(RandomTimelines, TheComputeStreamWorksOrStalls) {
  for (std::size_t s = 0; s < t_.lanes.size(); ++s) {
    if (file_.plan.streams[s].kind != StreamKind::compute) continue;
    Nanos idle{};
    for (const tidepool::Run& run : t_.runs) {
      if (at(run.stream) != s) continue;
      idle += run.idle;
      EXPECT_TRUE(run.idle == Nanos{0} || run.waits_for != kNone) << "a stall has a cause";
    }
    EXPECT_EQ(t_.lanes[s].busy + idle, t_.period);
  }
}

TEST_P(RandomTimelines, BytesHoldOneThingAtATime) {
  for (std::size_t i = 0; i < t_.lives.size(); ++i) {
    const DrawnLife& a = t_.lives[i];
    EXPECT_LE(a.offset + a.bytes, file_.plan.device_bytes());
    for (std::size_t k = i + 1; k < t_.lives.size(); ++k) {
      const DrawnLife& b = t_.lives[k];
      if (a.offset + a.bytes <= b.offset) break;
      EXPECT_FALSE(meet(a.time, b.time, t_.period))
          << "lives " << i << " and " << k << " at " << b.offset;
    }
  }
}

TEST_P(RandomTimelines, WhatAnInstructionTouchesIsThere) {
  const auto covered = [&](PlacementId id, const tidepool::Run& run) {
    const Placement& p = file_.plan.placements[at(id)];
    if (p.space != 0) return true;
    return std::any_of(t_.lives.begin(), t_.lives.end(), [&](const DrawnLife& s) {
      return s.tensor == p.tensor && s.offset == p.offset && covers(s.time, run.time, t_.period);
    });
  };
  for (std::size_t i = 0; i < t_.runs.size(); ++i) {
    const Instruction& x = file_.plan.steady.instructions[i];
    for (const PlacementId id : x.operands) EXPECT_TRUE(covered(id, t_.runs[i])) << i;
    if (x.kind != InstructionKind::copy) continue;
    EXPECT_TRUE(covered(x.from, t_.runs[i])) << i;
    EXPECT_TRUE(covered(x.to, t_.runs[i])) << i;
  }
}

TEST_P(RandomTimelines, TheLoadIsTheSumOfWhatLivesAndKeepsTheLimit) {
  Bytes peak = 0;
  Nanos last{-1};
  for (const LoadStep& step : t_.load) {
    EXPECT_LT(last, step.time);
    EXPECT_LT(step.time, t_.period);
    last = step.time;
    EXPECT_EQ(step.total(), live_bytes(t_, file_, step.time)) << step.time.count();
    peak = std::max(peak, step.total());
  }
  EXPECT_EQ(t_.peak_load, peak);
  EXPECT_LE(peak, load_limit_) << "the evaluator's limit";
  EXPECT_LE(peak, file_.plan.device_bytes());
  EXPECT_LE(peak, file_.device_budget);
}

TEST_P(RandomTimelines, EveryDecisionOfTheStrategyShows) {
  const AccessIndex index(file_.program);
  for (GapId g = 0; g < static_cast<GapId>(index.gaps().size()); ++g) {
    const Gap& gap = index.gaps()[at(g)];
    if (gap.kind != GapKind::device) continue;
    const Decision decision = file_.strategy.gaps[at(g)];
    int begins = 0;
    int ends = 0;
    for (const DrawnLife& s : t_.lives) {
      if (s.tensor != gap.tensor) continue;
      if (s.after == g) {
        ++begins;
        EXPECT_EQ(s.decision, decision) << g;
        EXPECT_NE(s.departure, Departure::ended) << g;
      }
      if (s.before == g) ++ends;
    }
    const int expected = decision == Decision::keep ? 0 : 1;
    EXPECT_EQ(begins, expected) << "gap " << g << " " << to_string(decision);
    EXPECT_EQ(ends, expected) << "gap " << g << " " << to_string(decision);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomTimelines, ::testing::Range(1, 25));

/// Op A on device 0 writes x (50 B) in 10 ns after op B on device 1, which wrote y (8 B, and 16 B
/// of workspace) in 20 ns; y is copied out.
PlanFile of_two_devices() {
  using enum AccessMode;
  PlanFile file;
  testing::ProgramBuilder b;
  const TensorId x = b.tensor("x", 50);
  const TensorId y = b.tensor("y", 8);
  b.device("A", {{x, write}}, Nanos{10});
  b.device("B", {{y, write}}, Nanos{20}, 16);
  b.last().device = 1;
  file.program = b.build();
  file.machine = with_devices(testing::byte_a_nanosecond(), 2);
  file.device_budget = 80;
  file.strategy.algorithms = {0, 0};
  Plan& plan = file.plan;
  plan.arenas = {{SpaceKind::device, 50, 1}, {SpaceKind::device, 24, 1}, {SpaceKind::host, 8, 1}};
  plan.streams = {{0, StreamKind::compute}, {1, StreamKind::compute}, {0, StreamKind::copy}};
  plan.placements = {{x, 0, 0, 50}, {y, 1, 0, 8}, {y, 2, 0, 8}};
  Instruction first;
  first.op = 0;
  first.operands = {0};
  first.waits = {{1, 1, -1}};
  Instruction second;
  second.stream = 1;
  second.op = 1;
  second.operands = {1};
  second.workspace_offset = 8;
  second.workspace_bytes = 16;
  Instruction copy;
  copy.kind = InstructionKind::copy;
  copy.stream = 2;
  copy.waits = {{1, 1, 0}};
  copy.from = 1;
  copy.to = 2;
  copy.bytes = 8;
  plan.steady.instructions = {first, second, copy};
  return file;
}

TEST(PlanTimeline, OfSeveralDevicesTheMemoryIsThatOfTheFirst) {
  const PlanFile file = of_two_devices();
  const PlanTimeline t = make_timeline(file);
  EXPECT_TRUE(t.periodic);
  EXPECT_EQ(t.period, Nanos{20});
  EXPECT_EQ(t.devices, 2);
  std::vector<std::string> lanes;
  for (const Lane& lane : t.lanes) lanes.push_back(lane.name);
  EXPECT_THAT(lanes, ElementsAre("device 0 compute", "device 1 compute", "device 1 copy out"));
  ASSERT_EQ(t.lives.size(), 1U);
  EXPECT_EQ(t.lives[0].bytes, 50);
  EXPECT_EQ(t.peak_load, 50);
  ASSERT_EQ(t.unlimited.size(), 1U);
  EXPECT_EQ(t.unlimited[0].bytes, 50);
  EXPECT_EQ(t.unlimited_peak, 50);
}

/// Whether x stays taken until the third op has run, which does not use it.
class HeldBytes : public ::testing::TestWithParam<bool> {};

TEST_P(HeldBytes, WithoutABudgetTheLoadIsThePrograms) {
  using enum AccessMode;
  testing::ProgramBuilder b;
  const TensorId w = b.tensor("w", 40, true);
  const TensorId x = b.tensor("x", 100);
  const TensorId y = b.tensor("y", 60);
  b.device("first", {{w, read}, {x, write}}, Nanos{10}, 30);
  b.device("second", {{x, read}, {y, write}}, Nanos{20});
  b.device("third", {{y, read}, {w, update}}, Nanos{30});
  Program program = b.build();
  if (GetParam()) program.tensors[static_cast<std::size_t>(x)].released_at = 2;
  Lowering lowering(program, testing::byte_a_nanosecond());
  Strategy strategy;
  strategy.gaps.assign(lowering.index().gaps().size(), Decision::keep);
  strategy.algorithms = {0, 0, 0};
  auto lowered = lowering.lower(strategy, {1000, 0});
  ASSERT_TRUE(lowered) << lowered.error().message;
  PlanFile file;
  file.program = program;
  file.machine = testing::byte_a_nanosecond();
  file.device_budget = 1000;
  file.strategy = lowered->strategy;
  file.plan = lowered->plan;
  const PlanTimeline t = make_timeline(file);
  const LoadProfile profile = load_profile(program, lowering.index(), 1, strategy.algorithms);
  ASSERT_EQ(t.unlimited.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(t.unlimited[i].bytes, profile.at_op[i]);
    EXPECT_EQ(live_bytes(t, file, t.unlimited[i].time.start), profile.at_op[i]);
  }
  EXPECT_EQ(t.unlimited_peak, profile.peak);
  EXPECT_EQ(t.peak_load, profile.peak);
}

INSTANTIATE_TEST_SUITE_P(BehindTheLastUse, HeldBytes, ::testing::Bool());

}  // namespace
}  // namespace tidepool
