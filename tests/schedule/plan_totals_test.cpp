#include "schedule/plan_totals.h"

#include <gtest/gtest.h>

#include "ir/load_profile.h"
#include "lower/lower.h"
#include "support/program_builder.h"

namespace tidepool {
namespace {

TEST(PlanTotals, CountsWhatMovesAndWhatRunsAgain) {
  using enum AccessMode;
  testing::ProgramBuilder b;
  const TensorId input = b.tensor("input", 100);
  const TensorId x = b.tensor("x", 200);
  const TensorId y = b.tensor("y", 300);
  const TensorId z = b.tensor("z", 400);
  b.host("feed", {{input, write}});
  b.device("a", {{input, read}, {x, write}}, Nanos{10});
  b.device("b", {{input, read}, {y, write}}, Nanos{10});
  b.device("c", {{x, read}, {z, write}}, Nanos{10});
  b.device("d", {{y, read}, {z, update}, {input, read}}, Nanos{10});
  b.host("collect", {{z, read}});
  const Program program = b.build();
  Lowering lowering(program, testing::byte_a_nanosecond(64));
  Strategy strategy =
      keep_everything(program, lowering.index(), least_workspace_algorithms(program));
  const auto decide = [&](TensorId t, Decision d) {
    strategy.gaps[static_cast<std::size_t>(lowering.index().first_gap(t))] = d;
  };
  decide(x, Decision::swap);
  decide(y, Decision::recompute);
  const auto lowered = lowering.lower(strategy, {1 << 20, 0});
  ASSERT_TRUE(lowered) << lowered.error().message;
  const PlanTotals totals = totals_of(program, lowered->plan);
  EXPECT_EQ(totals.copied_out, 200 + 400);
  EXPECT_EQ(totals.copied_in, 100 + 200);
  EXPECT_EQ(totals.swapped_tensors, 1);
  EXPECT_EQ(totals.swapped_out, 200);
  EXPECT_EQ(totals.recomputed_ops, 1);
  EXPECT_EQ(totals.compute_time, Nanos{50});
  EXPECT_EQ(totals.copied,
            (std::vector<CopiedBytes>{{0, 1, totals.copied_out}, {1, 0, totals.copied_in}}));
}

TEST(PlanTotals, CountsEverySpace) {
  testing::ProgramBuilder b;
  const TensorId x = b.tensor("x", 10);
  const TensorId y = b.tensor("y", 20);
  b.device("f", {{x, AccessMode::write}, {y, AccessMode::write}}, Nanos{7});
  const Program program = b.build();
  Plan plan;
  plan.arenas = {{SpaceKind::device, 64, 1},
                 {SpaceKind::device, 64, 1},
                 {SpaceKind::host, 64, 1},
                 {SpaceKind::file, 64, 1}};
  // x goes to the second device and back, y to the file and not back.
  plan.placements = {{x, 0, 0, 10}, {x, 1, 0, 10}, {y, 0, 16, 20}, {y, 2, 0, 20}, {y, 3, 0, 20}};
  const auto copy = [&](PlacementId from, PlacementId to, Bytes bytes) {
    Instruction c;
    c.kind = InstructionKind::copy;
    c.from = from;
    c.to = to;
    c.bytes = bytes;
    plan.steady.instructions.push_back(c);
  };
  Instruction f;
  f.op = 0;
  plan.steady.instructions.push_back(f);
  copy(0, 1, 10);
  copy(1, 0, 10);
  copy(2, 3, 20);
  copy(3, 4, 20);
  const PlanTotals totals = totals_of(program, plan);
  EXPECT_EQ(totals.copied,
            (std::vector<CopiedBytes>{{0, 1, 10}, {0, 2, 20}, {1, 0, 10}, {2, 3, 20}}));
  EXPECT_EQ(totals.copied_out, 10 + 10 + 20);
  EXPECT_EQ(totals.copied_in, 10 + 10);
  EXPECT_EQ(totals.swapped_tensors, 1);
  EXPECT_EQ(totals.swapped_out, 10 + 10);
  EXPECT_EQ(totals.recomputed_ops, 0);
  EXPECT_EQ(totals.compute_time, Nanos{7});
  EXPECT_EQ(totals.written, 20);
  plan.arenas[3].alignment = 16;
  EXPECT_EQ(written_to_files(plan), 32) << "whole blocks";
}

}  // namespace
}  // namespace tidepool
