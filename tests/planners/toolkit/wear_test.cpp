#include "planners/toolkit/wear.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "planners/toolkit/gap_search.h"
#include "schedule/plan_totals.h"
#include "support/program_builder.h"
#include "support/spill_machine.h"
#include "support/swap_programs.h"

namespace tidepool {
namespace {

TEST(Wear, IsOfMachinesWithAFile) {
  const Machine without = testing::two_mib_a_ms();
  const Machine with = testing::with_random_file(without, 1);
  EXPECT_FALSE(leaves_to_file(without));
  EXPECT_TRUE(leaves_to_file(with));
  const Program program = testing::SwapExample::make();
  EXPECT_EQ(bytes_written_when_away(program, without),
            std::vector<Bytes>(program.tensors.size(), 0));
  EXPECT_EQ(bytes_written_when_away(program, with)[0], testing::mib(4));
}

TEST(Wear, HalfAPercentIsAsFast) {
  EXPECT_EQ(as_fast_as(Nanos{1'000'000}), Nanos{1'005'000});
  EXPECT_EQ(as_fast_as(Nanos{100}), Nanos{100});
}

/// The file has the value still: the second gap copies it in alone.
TEST(Wear, AValueThatLeavesTwiceIsWrittenOnce) {
  using enum AccessMode;
  testing::ProgramBuilder b;
  const TensorId x = b.tensor("x", 1000);
  const TensorId large = b.tensor("large", 64 * kMiB);
  const TensorId larger = b.tensor("larger", 64 * kMiB);
  b.device("make", {{x, write}}, testing::ms(1));
  b.last().random = true;
  b.device("first", {{large, write}}, testing::ms(1));
  b.device("use", {{x, read}}, testing::ms(1));
  b.device("second", {{larger, write}}, testing::ms(1));
  b.device("use again", {{x, read}}, testing::ms(1));
  const Program program = b.build();
  const Machine machine = testing::with_random_file(testing::two_mib_a_ms(), 2);
  Lowering lowering(program, machine);
  const Strategy away = lowering.everything_away(least_workspace_algorithms(program));
  EXPECT_EQ(std::count(away.gaps.begin(), away.gaps.end(), Decision::drop), 1);
  const auto lowered = lowering.lower(away, {kGiB, 0});
  ASSERT_TRUE(lowered) << lowered.error().message;
  int out = 0;
  int in = 0;
  for (const Instruction& i : lowered->plan.steady.instructions) {
    if (i.kind != InstructionKind::copy) continue;
    out += lowered->plan.kind_of(i.to) == SpaceKind::file ? 1 : 0;
    in += lowered->plan.kind_of(i.from) == SpaceKind::file ? 1 : 0;
  }
  EXPECT_EQ(out, 1);
  EXPECT_EQ(in, 2);
  EXPECT_EQ(written_to_files(lowered->plan), align_up(1000, machine.alignment()));
}

TEST(Wear, ASearchCountsWhatItsPlansWrite) {
  int writing = 0;
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    SCOPED_TRACE(seed);
    const Program program = testing::random_program(seed);
    const Machine machine = testing::with_random_file(testing::random_machine(seed), seed);
    Lowering lowering(program, machine);
    GapSearch search(lowering, least_workspace_algorithms(program));
    AwayGaps away;
    for (const Decision d : lowering.everything_away(least_workspace_algorithms(program)).gaps) {
      away.push_back(d == Decision::keep ? kStays : kCopied);
    }
    GapSearchOptions options;
    options.allowance = Allowance::of(200);
    options.fast_enough = std::chrono::hours(1);
    const Bytes least = smallest_budget(program, machine.alignment()).bytes;
    if (!search.run(least * 5 / 4, {away}, options)) continue;
    const auto lowered = lowering.lower(search.strategy(search.best()), {kGiB, 0});
    ASSERT_TRUE(lowered) << lowered.error().message;
    EXPECT_EQ(search.written(), written_to_files(lowered->plan));
    writing += search.written() > 0 ? 1 : 0;
  }
  EXPECT_GT(writing, 0);
}

}  // namespace
}  // namespace tidepool
