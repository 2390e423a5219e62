#include "planners/published/geeps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planners/published/capuchin/capuchin_program.h"
#include "planning/make_plan.h"
#include "support/sanitized.h"
#include "support/trains_in_less.h"

namespace tidepool {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;
using Chain = testing::CapuchinChain;

class Geeps : public ::testing::Test {
 protected:
  [[nodiscard]] Planned plan(Bytes budget) const {
    FixedWorkload workload(program_);
    auto planned =
        make_plan(*make_geeps(), workload, testing::byte_a_nanosecond(1), {budget, 0}, {});
    EXPECT_TRUE(planned) << planned.error().message;
    return std::move(*planned);
  }
  [[nodiscard]] std::vector<std::string> away(const Strategy& strategy) const {
    const AccessIndex index(program_);
    std::vector<std::string> names;
    for (std::size_t g = 0; g < strategy.gaps.size(); ++g) {
      if (strategy.gaps[g] == Decision::keep) continue;
      names.push_back(program_.tensors[static_cast<std::size_t>(index.gaps()[g].tensor)].name);
    }
    return names;
  }

  /// The largest op, backward4, accesses 2010 bytes.
  Program program_ = Chain::make();
};

TEST_F(Geeps, WithMemoryForTheDoubleBufferAloneAllStreams) {
  const Planned planned = plan(4020);
  EXPECT_FALSE(planned.lowered.streaming);
  EXPECT_THAT(planned.notes, Contains(HasSubstr("a buffer of 3.9 KiB")));
  // x4, x5 and the gradients are only read by the op behind the one that made them.
  EXPECT_THAT(away(planned.lowered.strategy), UnorderedElementsAre("x0", "x1", "x2", "x3"));
}

TEST_F(Geeps, ACopyInBeginsWithTheOpBefore) {
  const AccessIndex index(program_);
  const Planned planned = plan(4020);
  const Strategy& strategy = planned.lowered.strategy;
  ASSERT_EQ(strategy.hints.size(), 4U);
  for (const CopyHint& hint : strategy.hints) {
    EXPECT_EQ(*hint.in_trigger + 1, index.gaps()[static_cast<std::size_t>(hint.gap)].to);
  }
}

TEST_F(Geeps, TensorsOfTheLargestOpsArePinnedAsLongAsTheyFit) {
  // x5 for backward4, x0, x1 for forward0 and 1, x3 for forward2 and 3: 4000 live bytes at the most
  // and a buffer of 2 * 1020. x2 or x4 in addition would be 1000 too many.
  const Planned planned = plan(7000);
  EXPECT_THAT(away(planned.lowered.strategy), ::testing::Contains("x2"));
  EXPECT_THAT(away(planned.lowered.strategy), ::testing::Not(::testing::Contains("x0")));
  EXPECT_EQ(away(planned.lowered.strategy).size(), 1U);
}

TEST_F(Geeps, EverythingIsPinnedWhereItFitsBesideNothing) {
  EXPECT_TRUE(away(plan(10'000).lowered.strategy).empty());
}

TEST_F(Geeps, AnInterruptedChoiceDoesNotSayThatGeepsCannotTrain) {
  // The buffer alone, 8020 bytes, does not fit: it does when x5 is pinned.
  program_.tensors[5].bytes = 3000;
  ASSERT_FALSE(plan(7500).lowered.streaming);
  FixedWorkload workload(program_);
  PlannerOptions options;
  options.stop = [] { return true; };
  const auto planned =
      make_plan(*make_geeps(), workload, testing::byte_a_nanosecond(1), {7500, 0}, options);
  ASSERT_FALSE(planned);
  EXPECT_EQ(planned.error().code, ErrorCode::interrupted);
}

TEST_F(Geeps, WhereTheDoubleBufferDoesNotFitTheStreamingScheduleIsUsedAndANoteSaysSo) {
  const Planned planned = plan(2500);
  EXPECT_TRUE(planned.lowered.streaming);
  EXPECT_THAT(planned.notes, Contains(HasSubstr("GeePS cannot train")));
}

TEST(GeepsOfRandomPrograms, TrainWhereTheyDoInLess) {
  const int programs = testing::usual_or(40, 20);
  EXPECT_GT(testing::expect_training_where_less_is_enough(make_geeps, programs,
                                                          {.most_layers = 14, .guards = false}),
            programs / 2);
}

}  // namespace
}  // namespace tidepool
