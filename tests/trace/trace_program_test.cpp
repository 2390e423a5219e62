#include "trace/trace_program.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/load_profile.h"
#include "support/recording_builder.h"

namespace tidepool {
namespace {

using ::testing::ElementsAre;
using testing::RandomTraining;
using testing::RecordingBuilder;

/// "name: r block0, w block1" per op.
std::vector<std::string> described(const Program& program) {
  std::vector<std::string> ops;
  for (const Op& op : program.ops) {
    std::string text = op.name + ":";
    for (const Access& access : op.accesses) {
      text += fmt::format(" {} {}", to_string(access.mode),
                          program.tensors[static_cast<std::size_t>(access.tensor)].name);
    }
    ops.push_back(std::move(text));
  }
  return ops;
}

/// A byte is read and written in 2 ns, an op starts in 100 ns.
const ComputeModel kDevice{1e12, 1e9, Nanos{100}, 1, 0};

TraceProgram program_of(const Recording& recording) {
  auto program = trace_program(recording, kDevice);
  EXPECT_TRUE(program) << program.error().message;
  return program ? std::move(*program) : TraceProgram{};
}

Bytes peak(const Program& program) {
  return load_profile(program, AccessIndex(program), 1, least_workspace_algorithms(program)).peak;
}

TEST(TraceProgram, OpsEndAtMallocsFreesRepeatedBlocksAndMixedWrites) {
  RecordingBuilder b;
  const BlockId w = b.block(10);
  const BlockId m = b.block(20);
  for (int i = 0; i < 2; ++i) {
    const BlockId x = b.malloc(100);     // 0
    b.write(x).read(w).use(x).use(m);    // 1 to 4: one op
    const BlockId y = b.malloc(200);     // 5
    b.read(y).read(x).write(m).read(w);  // 6 7, 8 9: m is persistent, y is not
    b.write(m).read(m).write(w);         // 10 to 12: m was accessed already
    b.free(x).write(y).free(y);          // 13 to 15
  }
  const TraceProgram t = program_of(b.recording());
  EXPECT_THAT(described(t.program), ElementsAre("access #1: write block2 read block0 read block1",
                                                "access #6: write block3 read block2",
                                                "access #8: update block1 read block0",
                                                "access #10: update block1 "
                                                "update block0",
                                                "access #14: update block3"));
  EXPECT_EQ(t.recorded_peak, 10 + 20 + 100 + 200);
  EXPECT_EQ(peak(t.program), t.recorded_peak);
  EXPECT_EQ(t.resident, 0);
  for (const Op& op : t.program.ops) EXPECT_FALSE(op.recomputable) << op.name;
  EXPECT_TRUE(t.program.tensors[0].persistent || t.program.tensors[1].persistent);
}

TEST(TraceProgram, NamedOpsKeepTheirAccessesTogether) {
  RecordingBuilder b;
  b.recording().ops = {"conv", "relu"};
  const BlockId w = b.block(10);
  for (int i = 0; i < 2; ++i) {
    const BlockId x = b.malloc(100);
    const BlockId scratch = b.malloc(5);
    b.event(EventKind::write, scratch, 0).event(EventKind::read, w, 0);
    b.event(EventKind::write, x, 0).event(EventKind::read, scratch, 0).free(scratch);
    b.event(EventKind::write, x, 1).free(x);
  }
  EXPECT_THAT(
      described(program_of(b.recording()).program),
      ElementsAre("conv #2: write block2 read block0 write block1", "relu #7: update block1"));
}

TEST(TraceProgram, TimesAreMeansAndMallocsAndFreesCountForTheNextOp) {
  RecordingBuilder b;
  const BlockId w = b.block(10);
  for (int i = 0; i < 3; ++i) {
    b.step = Nanos{1000 + 300 * i};
    const BlockId x = b.malloc(100);
    b.write(x).read(w).free(x).read(w);
  }
  const TraceProgram t = program_of(b.recording());
  ASSERT_EQ(t.program.ops.size(), 2U);
  EXPECT_EQ(t.program.ops[0].algorithms[0].time, Nanos{3 * 1300});
  // The last event of the recording has no successor: its time is the mean of the other two.
  EXPECT_EQ(t.program.ops[1].algorithms[0].time, Nanos{1300 + (1000 + 1300) / 2});
}

TEST(TraceProgram, WithoutTimesOpsHaveNone) {
  RecordingBuilder b;
  b.recording().has_times = false;
  for (int i = 0; i < 2; ++i) {
    const BlockId x = b.malloc(100);
    b.write(x).free(x);
  }
  EXPECT_EQ(program_of(b.recording()).program.ops[0].algorithms[0].time, Nanos{0});
}

TEST(TraceProgram, TwoGenerationsOfABlockAreCarried) {
  RecordingBuilder b;
  const BlockId w = b.block(1000);
  BlockId old = b.block(20);
  for (int i = 0; i < 3; ++i) {
    const BlockId g = b.malloc(20);
    b.write(g).read(w);
    b.write(old).free(old);
    b.read(g).write(w);
    old = g;
  }
  const TraceProgram t = program_of(b.recording());
  EXPECT_THAT(
      described(t.program),
      ElementsAre("access #1: write block2.young read block0", "access #3: update block2.old",
                  "carry block2.young: read block2.young write block2.old",
                  "access #5: read block2.old update block0"));
  EXPECT_EQ(t.recorded_peak, 1040);
  EXPECT_EQ(peak(t.program), 1040);
}

/// Once, blocks that outlive their iteration changed their address in no time.
TEST(TraceProgram, MovesTakeAsLongAsADeviceCopy) {
  RecordingBuilder b;
  const BlockId w = b.block(1000);
  BlockId old = b.block(20);
  BlockId next = b.block(300);
  for (int i = 0; i < 3; ++i) {
    const BlockId g = b.malloc(20);
    b.write(g).read(next).free(next);
    b.write(old).free(old).read(w);
    old = g;
    next = b.malloc(300);
    b.write(next);
  }
  const TraceProgram t = program_of(b.recording());
  Nanos moves{0};
  for (const Op& op : t.program.ops) {
    if (op.kind != "carry" && op.kind != "carry in") continue;
    const Bytes bytes = op.kind == "carry" ? 20 : 300;
    EXPECT_EQ(op.algorithms[0].time, Nanos{2 * bytes + 100}) << op.name;
    moves += op.algorithms[0].time;
  }
  EXPECT_EQ(moves, Nanos{40 + 600 + 200});
  EXPECT_EQ(t.move_time, moves);
  EXPECT_EQ(t.moved, 320);
  EXPECT_EQ(t.time(), b.step * 9 + moves);
}

TEST(TraceProgram, ABlockThatCrossesTheBoundaryOnlyJustIsCut) {
  RecordingBuilder b;
  const BlockId w = b.block(1000);
  BlockId next = b.block(20);
  for (int i = 0; i < 3; ++i) {
    const BlockId x = b.malloc(5);
    b.write(x).read(next).free(next);
    next = b.malloc(20);
    b.write(next).write(w).free(x);
  }
  const TraceProgram t = program_of(b.recording());
  EXPECT_THAT(described(t.program),
              ElementsAre("carry in block1: write block1", "access #1: write block2 read block1",
                          "access #5: write block3", "access #6: update block0",
                          "carry out block3: read block3"));
  EXPECT_EQ(peak(t.program), t.recorded_peak);
}

TEST(TraceProgram, NothingToPlanIsAnError) {
  RecordingBuilder none;
  const auto missing =
      trace_program(none.malloc(1) >= 0 ? none.recording() : none.recording(), kDevice);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::bad_input);
  RecordingBuilder idle;
  for (int i = 0; i < 3; ++i) idle.free(idle.malloc(8));
  const auto empty = trace_program(idle.recording(), kDevice);
  ASSERT_FALSE(empty);
  EXPECT_THAT(empty.error().message, ::testing::HasSubstr("nothing is accessed"));
}

TEST(TraceProgram, RandomTrainingsKeepTheirPeakAndTheirTime) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    RandomTraining training(seed);
    for (int i = 0; i < 7; ++i) training.iteration();
    const auto iteration = find_iteration(training.tape.recording());
    ASSERT_TRUE(iteration);
    const auto t = trace_program(training.tape.recording(), *iteration, kDevice);
    ASSERT_TRUE(t) << t.error().message;
    EXPECT_EQ(peak(t->program) + t->resident, t->recorded_peak);
    EXPECT_EQ(t->time() - t->move_time, training.tape.step * iteration->period);
  }
}

}  // namespace
}  // namespace tidepool
