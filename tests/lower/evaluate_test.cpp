// Hand-made programs with the start of every op and copy worked out on paper. Links move one byte a
// nanosecond, ops take 100 ns unless said otherwise.
#include "lower/evaluate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/program_builder.h"
#include "support/random_program.h"

namespace tidepool {
namespace {

using enum AccessMode;
using testing::byte_a_nanosecond;
using testing::ProgramBuilder;

constexpr Nanos kOp{100};

/// An evaluator and what it needs to stay alive.
class Bench {
 public:
  Bench(Program program, Machine machine)
      : program_(std::move(program)),
        machine_(std::move(machine)),
        index_(program_),
        evaluator_(program_, index_, machine_),
        strategy_(keep_everything(program_, index_, least_workspace_algorithms(program_))) {}

  /// The tensor's gap number `i` is swapped.
  void swap(TensorId tensor, GapId i = 0) {
    strategy_.gaps[static_cast<std::size_t>(index_.first_gap(tensor) + i)] = Decision::swap;
  }
  Evaluation evaluate(Bytes limit, bool prefetch = true, Nanos lead = Nanos::max()) {
    return evaluator_.evaluate(strategy_, {limit, prefetch, lead});
  }
  /// Starts of ops in order; of the one copy of a tensor in a direction.
  std::vector<std::int64_t> op_starts() { return starts(StepKind::op); }
  std::int64_t copy_start(StepKind kind, TensorId tensor) {
    for (const Step& s : evaluator_.steps()) {
      if (s.kind == kind &&
          evaluator_.expansion().moves[static_cast<std::size_t>(s.id)].tensor == tensor) {
        return s.start.count();
      }
    }
    ADD_FAILURE() << "no such copy";
    return -1;
  }
  Evaluator& evaluator() { return evaluator_; }
  [[nodiscard]] const Strategy& strategy() const { return strategy_; }

 private:
  std::vector<std::int64_t> starts(StepKind kind) {
    std::vector<std::int64_t> list;
    for (const Step& s : evaluator_.steps()) {
      if (s.kind == kind) list.push_back(s.start.count());
    }
    return list;
  }

  Program program_;
  Machine machine_;
  AccessIndex index_;
  Evaluator evaluator_;
  Strategy strategy_;
};

/// Four ops: x lives through all of them, idle while B and C run. Loads 100, 160, 200, 140.
Program four_ops() {
  ProgramBuilder b;
  const TensorId x = b.tensor("x", 100);
  const TensorId y = b.tensor("y", 60);
  const TensorId z = b.tensor("z", 40);
  b.device("A", {{x, write}}, kOp);
  b.device("B", {{y, write}}, kOp);
  b.device("C", {{y, read}, {z, write}}, kOp);
  b.device("D", {{x, read}, {z, read}}, kOp);
  return b.build();
}
constexpr TensorId kX = 0;

TEST(Evaluate, WithoutSwapsOpsFollowEachOther) {
  Bench bench(four_ops(), byte_a_nanosecond());
  const Evaluation e = bench.evaluate(200);
  ASSERT_TRUE(e.feasible);
  EXPECT_THAT(bench.op_starts(), ::testing::ElementsAre(0, 100, 200, 300));
  EXPECT_EQ(e.iteration_time, Nanos{400});
  EXPECT_EQ(e.compute_time, Nanos{400});
  EXPECT_EQ(e.stall(), Nanos{0});
  EXPECT_EQ(e.peak_load, 200);
  EXPECT_THAT(bench.evaluator().load(), ::testing::ElementsAre(100, 160, 200, 140));
}

TEST(Evaluate, OneByteTooLittleNamesTheOpThatDoesNotFit) {
  Bench bench(four_ops(), byte_a_nanosecond());
  const Evaluation e = bench.evaluate(199);
  EXPECT_FALSE(e.feasible);
  EXPECT_EQ(e.stuck, 2);
}

TEST(Evaluate, OneSwapHidesBehindTheOpsInItsGap) {
  Bench bench(four_ops(), byte_a_nanosecond());
  bench.swap(kX);
  const Evaluation e = bench.evaluate(200);
  ASSERT_TRUE(e.feasible);
  EXPECT_THAT(bench.op_starts(), ::testing::ElementsAre(0, 100, 200, 300));
  EXPECT_EQ(bench.copy_start(StepKind::copy_out, kX), 100);
  EXPECT_EQ(bench.copy_start(StepKind::copy_in, kX), 200);
  EXPECT_EQ(e.iteration_time, Nanos{400});
}

TEST(Evaluate, WithoutRoomForThePrefetchTheOpWaitsForItsCopyIn) {
  Bench bench(four_ops(), byte_a_nanosecond());
  bench.swap(kX);
  // 199: C's 100 and x do not fit together, so x comes in after C.
  const Evaluation e = bench.evaluate(199);
  ASSERT_TRUE(e.feasible);
  EXPECT_THAT(bench.op_starts(), ::testing::ElementsAre(0, 100, 200, 400));
  EXPECT_EQ(bench.copy_start(StepKind::copy_in, kX), 300);
  EXPECT_EQ(e.iteration_time, Nanos{500});
  EXPECT_EQ(e.stall(), Nanos{100});
}

TEST(Evaluate, AnOpWaitsForTheCopyOutThatMakesItsRoom) {
  // C needs 100 and x is still on its way out when it could start: at half the speed until 300.
  Machine slow_out = byte_a_nanosecond();
  slow_out.to_host().bytes_per_second = 0.5e9;
  Bench bench(four_ops(), slow_out);
  bench.swap(kX);
  const Evaluation e = bench.evaluate(199);
  ASSERT_TRUE(e.feasible);
  // Out [100, 300); C [300, 400); in [400, 500); D at 500.
  EXPECT_THAT(bench.op_starts(), ::testing::ElementsAre(0, 100, 300, 500));
  EXPECT_EQ(e.stall(), Nanos{200});
}

TEST(Evaluate, AStalledProgramRunsOnWhenThereIsRoomForTheCopyInFlight) {
  Machine slow_out = byte_a_nanosecond();
  slow_out.to_host().bytes_per_second = 0.5e9;
  Bench bench(four_ops(), slow_out);
  bench.swap(kX);
  const Evaluation e = bench.evaluate(1000);
  ASSERT_TRUE(e.feasible);
  // Out [100, 300), in [300, 400): only D waits.
  EXPECT_THAT(bench.op_starts(), ::testing::ElementsAre(0, 100, 200, 400));
}

TEST(Evaluate, WhatNeverFitsIsInfeasibleAtTheOpThatNeedsIt) {
  Bench bench(four_ops(), byte_a_nanosecond());
  bench.swap(kX);
  EXPECT_TRUE(bench.evaluate(140).feasible);
  const Evaluation e = bench.evaluate(139);
  EXPECT_FALSE(e.feasible);
  EXPECT_EQ(e.stuck, 3);
}

/// Five ops; a swap of x brings the peak from 240 at C to 180 and still hides.
Program five_ops() {
  ProgramBuilder b;
  const TensorId x = b.tensor("x", 100);
  const TensorId y = b.tensor("y", 20);
  const TensorId z = b.tensor("z", 20);
  const TensorId u = b.tensor("u", 60);
  b.device("A", {{x, write}}, kOp);
  b.device("B", {{y, write}}, kOp);
  b.device("C", {{y, read}, {z, write}}, kOp, 100);
  b.device("D", {{z, read}, {u, write}}, kOp);
  b.device("E", {{x, read}, {u, read}}, kOp);
  return b.build();
}

TEST(Evaluate, ASwapThatLowersThePeakCanBeFree) {
  Bench bench(five_ops(), byte_a_nanosecond());
  EXPECT_FALSE(bench.evaluate(239).feasible);
  EXPECT_TRUE(bench.evaluate(240).feasible);
  bench.swap(kX);
  const Evaluation e = bench.evaluate(180);
  ASSERT_TRUE(e.feasible);
  EXPECT_THAT(bench.op_starts(), ::testing::ElementsAre(0, 100, 200, 300, 400));
  EXPECT_EQ(bench.copy_start(StepKind::copy_out, kX), 100);
  EXPECT_EQ(bench.copy_start(StepKind::copy_in, kX), 300);
  EXPECT_EQ(e.iteration_time, Nanos{500});
  EXPECT_EQ(e.peak_load, 180);
}

TEST(Evaluate, OneByteLessThanTheFreeSwapNeedsCostsTheWholeCopyIn) {
  Bench bench(five_ops(), byte_a_nanosecond());
  bench.swap(kX);
  const Evaluation e = bench.evaluate(179);
  ASSERT_TRUE(e.feasible);
  EXPECT_EQ(bench.copy_start(StepKind::copy_in, kX), 400);
  EXPECT_THAT(bench.op_starts(), ::testing::ElementsAre(0, 100, 200, 300, 500));
  EXPECT_EQ(e.stall(), Nanos{100});
}

TEST(Evaluate, ASlowLinkInMakesTheCopyInLate) {
  Machine slow_in = byte_a_nanosecond();
  slow_in.to_device().bytes_per_second = 0.5e9;
  Bench bench(five_ops(), slow_in);
  bench.swap(kX);
  const Evaluation e = bench.evaluate(180);
  ASSERT_TRUE(e.feasible);
  EXPECT_EQ(bench.copy_start(StepKind::copy_in, kX), 300);
  EXPECT_THAT(bench.op_starts(), ::testing::ElementsAre(0, 100, 200, 300, 500));
}

TEST(Evaluate, LatencyCountsForEveryCopy) {
  Machine latency = byte_a_nanosecond();
  latency.to_host().latency = Nanos{30};
  latency.to_device().latency = Nanos{50};
  Bench bench(four_ops(), latency);
  bench.swap(kX);
  const Evaluation e = bench.evaluate(1000);
  ASSERT_TRUE(e.feasible);
  // Out [100, 230), in [230, 380).
  EXPECT_EQ(bench.copy_start(StepKind::copy_in, kX), 230);
  EXPECT_THAT(bench.op_starts(), ::testing::ElementsAre(0, 100, 200, 380));
}

TEST(Evaluate, WithoutPrefetchTheCopyInStartsWhenTheOpBeforeIsOver) {
  Bench bench(five_ops(), byte_a_nanosecond());
  bench.swap(kX);
  const Evaluation e = bench.evaluate(1000, false);
  ASSERT_TRUE(e.feasible);
  // Issued right before E; nothing else holds it back but its copy out.
  EXPECT_LE(bench.copy_start(StepKind::copy_in, kX), 400);
  EXPECT_GE(bench.copy_start(StepKind::copy_in, kX), 200);
}

/// A weight used by A and U only: its wrapping gap is idle while B and C run. Loads with it: 120,
/// 120, 160, 180.
Program wrapping() {
  ProgramBuilder b;
  const TensorId w = b.tensor("w", 100, true);
  const TensorId y = b.tensor("y", 20);
  const TensorId z = b.tensor("z", 60);
  const TensorId v = b.tensor("v", 20);
  b.device("A", {{w, read}, {y, write}}, kOp);
  b.device("U", {{y, read}, {w, update}}, kOp);
  b.device("B", {{z, write}}, kOp);
  b.device("C", {{z, read}, {v, write}}, kOp);
  return b.build();
}

TEST(Evaluate, AWrappingGapsCopyInRunsBeforeItsIterationBegins) {
  Bench bench(wrapping(), byte_a_nanosecond());
  EXPECT_TRUE(bench.evaluate(180).feasible);
  bench.swap(0, 1);
  const Evaluation e = bench.evaluate(180);
  ASSERT_TRUE(e.feasible);
  EXPECT_THAT(bench.op_starts(), ::testing::ElementsAre(0, 100, 200, 300));
  EXPECT_EQ(bench.copy_start(StepKind::copy_out, 0), 200);
  EXPECT_EQ(bench.copy_start(StepKind::copy_in, 0), -100) << "during C of the iteration before";
  EXPECT_EQ(e.iteration_time, Nanos{400});
}

TEST(Evaluate, AWrappingGapWithoutRoomAtTheTailStallsTheNextIterationsStart) {
  Bench bench(wrapping(), byte_a_nanosecond());
  EXPECT_FALSE(bench.evaluate(179).feasible);
  bench.swap(0, 1);
  const Evaluation e = bench.evaluate(179);
  ASSERT_TRUE(e.feasible);
  EXPECT_EQ(bench.copy_start(StepKind::copy_in, 0), 0);
  EXPECT_THAT(bench.op_starts(), ::testing::ElementsAre(100, 200, 300, 400));
  EXPECT_EQ(e.iteration_time, Nanos{500});
}

/// x's copy in and q's copy out want the link at the same time.
Program two_swaps() {
  ProgramBuilder b;
  const TensorId x = b.tensor("x", 100);
  const TensorId q = b.tensor("q", 200);
  const TensorId y = b.tensor("y", 20);
  const TensorId z = b.tensor("z", 20);
  b.device("A", {{x, write}}, kOp);
  b.device("B", {{q, write}}, kOp);
  b.device("C", {{y, write}}, kOp);
  b.device("D", {{x, read}, {y, read}, {z, write}}, kOp);
  b.device("E", {{q, read}, {z, read}}, kOp);
  return b.build();
}

TEST(Evaluate, OnADuplexLinkBothDirectionsRunAtOnce) {
  Bench bench(two_swaps(), byte_a_nanosecond());
  bench.swap(0);
  bench.swap(1);
  const Evaluation e = bench.evaluate(1000);
  ASSERT_TRUE(e.feasible);
  EXPECT_EQ(bench.copy_start(StepKind::copy_out, 0), 100);
  EXPECT_EQ(bench.copy_start(StepKind::copy_out, 1), 200);
  EXPECT_EQ(bench.copy_start(StepKind::copy_in, 0), 200);
  EXPECT_EQ(bench.copy_start(StepKind::copy_in, 1), 400);
  EXPECT_THAT(bench.op_starts(), ::testing::ElementsAre(0, 100, 200, 300, 600));
  EXPECT_EQ(e.iteration_time, Nanos{700});
}

TEST(Evaluate, OnASimplexLinkTheyTakeTurns) {
  Machine simplex = byte_a_nanosecond();
  simplex.set_duplex(false);
  Bench bench(two_swaps(), simplex);
  bench.swap(0);
  bench.swap(1);
  const Evaluation e = bench.evaluate(1000);
  ASSERT_TRUE(e.feasible);
  // One stream: out x [100, 200), in x [200, 300), out q [300, 500), in q [500, 700).
  EXPECT_EQ(bench.copy_start(StepKind::copy_out, 0), 100);
  EXPECT_EQ(bench.copy_start(StepKind::copy_in, 0), 200);
  EXPECT_EQ(bench.copy_start(StepKind::copy_out, 1), 300);
  EXPECT_EQ(bench.copy_start(StepKind::copy_in, 1), 500);
  EXPECT_THAT(bench.op_starts(), ::testing::ElementsAre(0, 100, 200, 300, 700));
  EXPECT_EQ(e.iteration_time, Nanos{800});
}

/// x is idle from A to F, s from C to E.
Program late_and_early_gap() {
  ProgramBuilder b;
  const TensorId x = b.tensor("x", 100);
  const TensorId s = b.tensor("s", 10);
  const TensorId y = b.tensor("y", 10);
  b.device("A", {{x, write}}, kOp);
  b.device("B", {{y, write}}, kOp);
  b.device("C", {{y, read}, {s, write}}, kOp);
  b.device("D", {{y, update}}, kOp);
  b.device("E", {{s, read}}, kOp);
  b.device("F", {{x, read}}, kOp);
  return b.build();
}

/// s is needed first, but is not on the host before 310.
TEST(Evaluate, ACopyInPassesByOneWhoseBytesAreNotOnTheHostYet) {
  Bench bench(late_and_early_gap(), byte_a_nanosecond());
  bench.swap(0);
  bench.swap(1);
  ASSERT_TRUE(bench.evaluate(1000).feasible);
  EXPECT_EQ(bench.copy_start(StepKind::copy_in, 0), 200);
  EXPECT_EQ(bench.copy_start(StepKind::copy_in, 1), 310);
}

/// x has to start at 400 to be there at 500.
TEST(Evaluate, AShortLeadKeepsCopiesInBackUntilTheyAreNeeded) {
  for (const auto& [lead, start] : {std::pair{0, 400}, {100, 300}, {1000, 200}}) {
    Bench bench(late_and_early_gap(), byte_a_nanosecond());
    bench.swap(0);
    const Evaluation e = bench.evaluate(1000, true, Nanos{lead});
    EXPECT_EQ(bench.copy_start(StepKind::copy_in, 0), start) << lead;
    EXPECT_EQ(e.stall(), Nanos{0}) << lead;
  }
}

TEST(Evaluate, AnUploadWaitsForItsHostOpAndADownloadForItsDeviceOp) {
  ProgramBuilder b;
  const TensorId input = b.tensor("input", 100);
  const TensorId loss = b.tensor("loss", 40);
  b.host("feed", {{input, write}}, Nanos{30});
  b.device("work", {{input, read}, {loss, write}}, kOp);
  b.host("collect", {{loss, read}}, Nanos{5});
  Bench bench(b.build(), byte_a_nanosecond());
  const Evaluation e = bench.evaluate(1000);
  ASSERT_TRUE(e.feasible);
  const auto steps = bench.evaluator().steps();
  ASSERT_EQ(steps.size(), 5u);  // feed, copy in, work, copy out, collect
  EXPECT_EQ(steps[0].kind, StepKind::op);
  EXPECT_EQ(steps[1].kind, StepKind::copy_in);
  EXPECT_EQ(steps[3].kind, StepKind::copy_out);
  EXPECT_GE(steps[1].start, steps[0].end);
  EXPECT_GE(steps[2].start, steps[1].end);
  EXPECT_EQ(steps[3].start, steps[2].end);
  EXPECT_EQ(steps[4].start, steps[3].end);
  EXPECT_EQ(steps[1].end - steps[1].start, Nanos{100});
  EXPECT_EQ(steps[3].end - steps[3].start, Nanos{40});
}

TEST(Evaluate, TheSameQuestionTwiceHasTheSameAnswer) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Program program = testing::random_program(seed);
    const AccessIndex index(program);
    Evaluator evaluator(program, index, testing::random_machine(seed));
    const Strategy a = testing::random_strategy(program, index, 0.3, seed);
    const Strategy b = testing::random_strategy(program, index, 0.8, seed + 1);
    const Evaluation first = evaluator.evaluate(a, {Bytes{1} << 40, true});
    (void)evaluator.evaluate(b, {smallest_budget(program, 64).bytes, true});
    const Evaluation again = evaluator.evaluate(a, {Bytes{1} << 40, true});
    EXPECT_EQ(first.iteration_time, again.iteration_time) << seed;
    EXPECT_EQ(first.peak_load, again.peak_load) << seed;
  }
}

TEST(Evaluate, GivesUpAboveATimeAndNotAtIt) {
  Bench bench(four_ops(), byte_a_nanosecond());
  bench.swap(kX);
  EvaluateOptions options{199};  // takes 500 ns
  options.give_up_above = Nanos{500};
  EXPECT_EQ(bench.evaluator().evaluate(bench.strategy(), options).iteration_time, Nanos{500});
  options.give_up_above = Nanos{499};
  EXPECT_FALSE(bench.evaluator().evaluate(bench.strategy(), options).feasible);
}

TEST(Evaluate, KeepingEverythingHasThePeakOfTheLoadProfile) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const Program program = testing::random_program(seed);
    const AccessIndex index(program);
    const Machine machine = testing::random_machine(seed);
    const auto algorithms = least_workspace_algorithms(program);
    Evaluator evaluator(program, index, machine);
    const LoadProfile profile = load_profile(program, index, machine.alignment(), algorithms);
    const Strategy keep = keep_everything(program, index, algorithms);
    const Evaluation e = evaluator.evaluate(keep, {profile.peak, false});
    ASSERT_TRUE(e.feasible) << seed;
    EXPECT_EQ(e.peak_load, profile.peak) << seed;
  }
}

TEST(StreamTable, ADuplexMachineHasOneCopyStreamMoreThanASimplexOne) {
  Machine m = byte_a_nanosecond();
  const StreamTable duplex = StreamTable::of(m);
  m.set_duplex(false);
  const StreamTable simplex = StreamTable::of(m);
  EXPECT_EQ(duplex.streams.size(), 4u);
  EXPECT_EQ(simplex.streams.size(), 3u);
  EXPECT_NE(duplex.in, duplex.out);
  EXPECT_EQ(simplex.in, simplex.out);
  for (const StreamTable& t : {duplex, simplex}) {
    EXPECT_EQ(t.streams[static_cast<std::size_t>(t.compute)].kind, StreamKind::compute);
    EXPECT_EQ(t.streams[static_cast<std::size_t>(t.in)].kind, StreamKind::copy);
    EXPECT_EQ(t.streams[static_cast<std::size_t>(t.out)].kind, StreamKind::copy);
    EXPECT_EQ(t.streams[static_cast<std::size_t>(t.host)].kind, StreamKind::host);
  }
}

TEST(Replay, WaitsForThePreviousIterationAreFreeInTheFirst) {
  // Two streams: a 10 ns step that waits for last iteration's 30 ns step.
  std::vector<Step> steps(2);
  steps[0].stream = 0;
  steps[0].duration = Nanos{10};
  steps[0].waits[1] = {1, -1};
  steps[1].stream = 1;
  steps[1].duration = Nanos{30};
  steps[1].waits[0] = {0, 0};
  ReplayScratch scratch;
  EXPECT_EQ(replay(steps, 0, scratch), Nanos{40});
  EXPECT_EQ(steps[0].start, Nanos{30});
  EXPECT_EQ(steps[1].start, Nanos{40});
}

}  // namespace
}  // namespace tidepool
