#include "schedule/releases.h"

#include <gtest/gtest.h>

#include "lower/lower.h"
#include "support/program_builder.h"

namespace tidepool {
namespace {

TEST(Releases, AreWhereTheLastOpHadTheBytesUntilTheNamedOneRuns) {
  using enum AccessMode;
  testing::ProgramBuilder b;
  const TensorId x = b.tensor("x", 100);
  const TensorId y = b.tensor("y", 60);
  b.device("a", {{x, write}}, Nanos{10});
  b.device("b", {{x, read}, {y, write}}, Nanos{10});
  b.device("c", {{y, read}}, Nanos{10});
  Program program = b.build();
  for (const bool held : {false, true}) {
    if (held) program.tensors[static_cast<std::size_t>(x)].released_at = 2;
    Lowering lowering(program, testing::byte_a_nanosecond());
    const auto lowered =
        lowering.lower(keep_everything(program, lowering.index(), {0, 0, 0}), {1000, 0});
    ASSERT_TRUE(lowered) << lowered.error().message;
    const auto found = releases(program, lowered->plan);
    ASSERT_EQ(found.size(), held ? 1U : 0U);
    if (!held) continue;
    EXPECT_EQ(lowered->plan.placements[static_cast<std::size_t>(found[0].placement)].tensor, x);
    const Instruction& until =
        lowered->plan.steady.instructions[static_cast<std::size_t>(found[0].until)];
    EXPECT_EQ(until.kind, InstructionKind::op);
    EXPECT_EQ(until.op, 2);
  }
}

}  // namespace
}  // namespace tidepool
