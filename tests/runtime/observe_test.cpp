#include "runtime/observe.h"

#include <gtest/gtest.h>

#include <numeric>

#include "lower/lower.h"
#include "support/fake_device.h"
#include "support/program_builder.h"
#include "support/random_program.h"
#include "support/sanitized.h"
#include "support/tag_runner.h"

namespace tidepool {
namespace {

/// Of each instruction on a compute stream, by the fake device's own record. (No work on it can
/// read its virtual clock, so an executor's recorded times say nothing there.)
std::vector<std::vector<OpTiming>> run_and_time(const Program& program, const Plan& plan,
                                                FakeScript script, std::int64_t iterations) {
  FakeDevice device(std::move(script));
  testing::TagRunner runner(program);
  Executor executor(program, plan, device, runner);
  executor.run(iterations);
  const auto& list = plan.steady.instructions;
  std::vector<std::vector<OpTiming>> timings;
  auto record = device.records().begin();
  for (std::int64_t k = 0; k < iterations; ++k) {
    auto& iteration = timings.emplace_back(list.size());
    for (std::size_t i = 0; i < list.size(); ++i, ++record) {
      const auto stream = static_cast<std::size_t>(list[i].stream);
      if (plan.streams[stream].kind != StreamKind::compute) continue;
      iteration[i] = {record->start, record->end};
    }
  }
  return timings;
}

Observation observe_one(const Plan& plan, const TimedBlock& block, Strategy strategy = {}) {
  return observe(plan, std::move(strategy), {&block, 1});
}

/// The device runs exactly as fast as planned: what is observed is what the timing engine said.
TEST(Observe, OnADeviceAsFastAsPlannedTheStallsAreThePlannedOnes) {
  const auto programs = testing::usual_or<std::uint64_t>(20, 5);
  std::uint64_t stalled = 0;
  for (std::uint64_t seed = 0; seed < programs; ++seed) {
    SCOPED_TRACE(seed);
    testing::RandomShape shape;
    shape.guards = false;
    const Program program = testing::random_program(seed, shape);
    const Machine machine = testing::random_machine(seed);
    Lowering lowering(program, machine);
    const Bytes budget = smallest_budget(program, machine.alignment()).bytes * 3 / 2;
    const auto lowered =
        lowering.lower(lowering.everything_away(least_workspace_algorithms(program)), {budget, 0});
    ASSERT_TRUE(lowered);
    const auto& list = lowered->plan.steady.instructions;
    FakeScript script;
    script.op_time = [&](const WorkLabel& label) {
      if (label.op < 0) return Nanos{0};
      return program.ops[static_cast<std::size_t>(label.op)]
          .algorithms[static_cast<std::size_t>(label.algorithm)]
          .time;
    };
    script.copy_time = [&](CopyRoute route, Bytes bytes) {
      return (route == CopyRoute::to_host ? machine.to_host() : machine.to_device()).time(bytes);
    };
    const Observation seen =
        observe_one(lowered->plan, run_and_time(program, lowered->plan, std::move(script), 40),
                    lowered->strategy);
    EXPECT_TRUE(decide_the_same(seen.strategy, lowered->strategy));
    ASSERT_EQ(seen.durations.size(), list.size());
    ASSERT_EQ(seen.stalls.size(), list.size());
    Nanos busy{0};
    Nanos idle{0};
    for (std::size_t i = 0; i < list.size(); ++i) {
      const auto stream = static_cast<std::size_t>(list[i].stream);
      if (lowered->plan.streams[stream].kind != StreamKind::compute) {
        EXPECT_EQ(seen.durations[i], Observation::kNotMeasured);
        EXPECT_EQ(seen.stalls[i], Observation::kNotMeasured);
        continue;
      }
      EXPECT_EQ(seen.durations[i], lowered->steps[i].duration);
      busy += seen.durations[i];
      idle += seen.stalls[i];
    }
    EXPECT_EQ(busy, lowered->compute_time);
    EXPECT_EQ(busy + idle, lowered->iteration_time);
    stalled += idle > Nanos{0} ? 1 : 0;
  }
  EXPECT_GT(stalled, programs / 4);
}

TEST(Observe, TakesMeansAndLeavesOutWhatDidNotRun) {
  const Program program = testing::tiny_training();
  Lowering lowering(program, testing::byte_a_nanosecond(64));
  const auto lowered = lowering.lower(
      keep_everything(program, lowering.index(), least_workspace_algorithms(program)),
      {1 << 20, 0});
  ASSERT_TRUE(lowered);
  const Plan& plan = lowered->plan;
  const auto& list = plan.steady.instructions;
  std::vector<std::size_t> ops;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (plan.streams[static_cast<std::size_t>(list[i].stream)].kind == StreamKind::compute) {
      ops.push_back(i);
    }
  }
  ASSERT_EQ(ops.size(), 4U);
  // Five iterations of 1000 ns, the last of 2000; the second op is skipped but in the first, the
  // fourth always.
  std::vector<std::vector<OpTiming>> timings(5, std::vector<OpTiming>(list.size()));
  const Nanos first_takes[] = {Nanos{10}, Nanos{500}, Nanos{30}, Nanos{40}, Nanos{900}};
  for (int k = 0; k < 5; ++k) {
    auto& iteration = timings[static_cast<std::size_t>(k)];
    const Nanos begin{1000 * k + 1};
    iteration[ops[0]] = {begin, begin + first_takes[k]};
    if (k == 0) iteration[ops[1]] = {begin + Nanos{60}, begin + Nanos{70}};
    const Nanos later{k == 1 ? -100 : k == 4 ? 1000 : 0};  // so that 2, 3 are the usual ones
    iteration[ops[2]] = {begin + Nanos{600}, begin + Nanos{700} + later};
  }
  const Observation seen = observe_one(plan, timings, lowered->strategy);
  EXPECT_EQ(seen.durations[ops[0]], Nanos{35});
  EXPECT_EQ(seen.stalls[ops[0]], Nanos{350}) << "from the end of the iteration before";
  EXPECT_EQ(seen.durations[ops[1]], Nanos{10}) << "in none of the usual ones";
  EXPECT_EQ(seen.stalls[ops[1]], Nanos{50});
  EXPECT_EQ(seen.durations[ops[2]], Nanos{100});
  EXPECT_EQ(seen.stalls[ops[2]], Nanos{565}) << "of 570 and 560";
  EXPECT_EQ(seen.durations[ops[3]], Observation::kNotMeasured);
  EXPECT_EQ(seen.stalls[ops[3]], Observation::kNotMeasured);
}

/// An op for 100 ns an iteration, a copy out of 50 that begins in its middle, and one in that runs
/// from the end of one iteration into the next.
TEST(Observe, CopiesBesideAnOpAreOfAnyIteration) {
  Plan plan;
  plan.streams.resize(3);
  plan.placements.resize(2);
  plan.placements[0].space = SpaceId{0};
  plan.placements[1].space = SpaceId{1};
  Instruction op;
  op.kind = InstructionKind::op;
  Instruction out;
  out.kind = InstructionKind::copy;
  out.stream = StreamId{1};
  out.from = PlacementId{0};
  out.to = PlacementId{1};
  Instruction in = out;
  in.stream = StreamId{2};
  std::swap(in.from, in.to);
  plan.steady.instructions = {op, out, in};
  const auto span = [](std::int64_t start, std::int64_t end) {
    return OpTiming{Nanos{start}, Nanos{end}};
  };
  std::vector<std::vector<OpTiming>> timings;
  for (std::int64_t k = 1; k <= 4; ++k) {
    const std::int64_t t = 200 * k;
    timings.push_back({span(t, t + 100), span(t + 50, t + 100), span(t + 180, t + 225)});
  }
  const Observation seen = observe_one(plan, timings);
  EXPECT_EQ(seen.durations, (std::vector<Nanos>{Nanos{100}, Nanos{50}, Nanos{45}}));
  ASSERT_EQ(seen.beside.size(), 3U);
  EXPECT_DOUBLE_EQ(seen.beside[0].out, 0.5);
  EXPECT_DOUBLE_EQ(seen.beside[0].in, 0.25);
  EXPECT_EQ(seen.beside[1].out, 0);
}

/// Two ops and a copy that the second one waits for, every 1000 ns; a pause between two blocks.
TEST(Observe, TellsHowLateStreamsBeginByWhatTheyBeginAfter) {
  Plan plan;
  plan.streams.resize(2);
  plan.streams[1].kind = StreamKind::copy;
  plan.placements.resize(2);
  plan.placements[1].space = SpaceId{1};
  Instruction op;
  op.kind = InstructionKind::op;
  Instruction copy;
  copy.kind = InstructionKind::copy;
  copy.stream = StreamId{1};
  copy.from = PlacementId{0};
  copy.to = PlacementId{1};
  copy.waits = {{StreamId{0}, 0, 0}};
  Instruction second = op;
  second.waits = {{StreamId{1}, 1, 0}};
  plan.steady.instructions = {op, copy, second};
  const auto block = [](std::int64_t begin) {
    TimedBlock iterations;
    for (std::int64_t t = begin; t < begin + 4000; t += 1000) {
      const auto span = [&](std::int64_t start, std::int64_t end) {
        return OpTiming{Nanos{t + start}, Nanos{t + end}};
      };
      iterations.push_back({span(3, 400), span(450, 600), span(670, 1000)});
    }
    return iterations;
  };
  const TimedBlock blocks[] = {block(1000), block(90'000)};
  const Observation seen = observe(plan, {}, blocks);
  ASSERT_EQ(seen.begun.size(), 2U);
  const Observation::Begun& compute = seen.begun[0];
  const Observation::Begun& copies = seen.begun[1];
  EXPECT_GT(compute.next, 0);
  EXPECT_EQ(compute.late.next, compute.next * Nanos{3});
  EXPECT_EQ(compute.woken, compute.next);
  EXPECT_EQ(compute.late.woken, compute.woken * Nanos{70});
  EXPECT_EQ(copies.next, 0);
  EXPECT_EQ(copies.late.woken, copies.woken * Nanos{50});
  EXPECT_EQ(copies.woken, compute.woken);
}

}  // namespace
}  // namespace tidepool
