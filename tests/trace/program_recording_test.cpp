#include "trace/program_recording.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/load_profile.h"
#include "support/random_program.h"
#include "trace/trace_program.h"

namespace tidepool {
namespace {

TEST(ProgramRecording, IsValidAndHasThePeakOfTheProgram) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    const Program program = testing::random_program(seed);
    const auto algorithms = least_workspace_algorithms(program);
    const ProgramRecording recorded = record_program(program, algorithms, 3);
    BlockOrder order;
    for (const TraceEvent& event : recorded.recording.events) {
      ASSERT_EQ(order.next(event.kind, event.block), "");
    }
    const Bytes peak = load_profile(program, AccessIndex(program), 1, algorithms).peak;
    EXPECT_EQ(find_block_lives(recorded.recording, recorded.iteration).peak, peak);
    EXPECT_EQ(peak_live_bytes(recorded.recording), peak);
    EXPECT_EQ(recorded.iteration.period * 3,
              static_cast<std::int64_t>(recorded.recording.events.size()));
  }
}

TEST(ProgramRecording, BecomesAProgramOfTheSameTime) {
  const Program program = testing::random_program(7);
  const auto algorithms = least_workspace_algorithms(program);
  const ProgramRecording recorded = record_program(program, algorithms, 2);
  const auto back = trace_program(recorded.recording, recorded.iteration, ComputeModel{});
  ASSERT_TRUE(back) << back.error().message;
  Nanos expected{0}, actual{0};
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    const Op& op = program.ops[i];
    if (op.place != OpPlace::device) continue;
    expected += op.algorithms[static_cast<std::size_t>(algorithms[i])].time;
  }
  for (const Op& op : back->program.ops) actual += op.algorithms[0].time;
  EXPECT_EQ(actual, expected);
}

}  // namespace
}  // namespace tidepool
