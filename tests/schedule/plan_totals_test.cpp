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
}

}  // namespace
}  // namespace tidepool
