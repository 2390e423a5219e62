#include "planners/published/superneurons/superneurons_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/load_profile.h"
#include "layers_by_kind.h"
#include "planning/make_plan.h"

namespace tidepool {
namespace {

class SuperNeuronsCache : public ::testing::Test {
 protected:
  [[nodiscard]] Planned plan(Bytes budget) const {
    FixedWorkload workload(program_);
    auto planned = make_plan(*make_superneurons_cache(), workload, testing::byte_a_nanosecond(1),
                             {budget, 0}, {});
    EXPECT_TRUE(planned) << planned.error().message;
    return std::move(*planned);
  }
  [[nodiscard]] Bytes peak() const {
    return load_profile(program_, AccessIndex(program_), 1, least_workspace_algorithms(program_))
        .peak;
  }
  Program program_ = testing::layers_by_kind();
};

TEST_F(SuperNeuronsCache, NothingLeavesWhereAllFits) {
  const Planned planned = plan(peak());
  EXPECT_TRUE(testing::away(program_, planned.lowered.strategy).empty());
  EXPECT_THAT(planned.notes, ::testing::Contains("0 evictions, 0 returns"));
}

TEST_F(SuperNeuronsCache, OnlyWhatCheckpointsMadeLeavesTheOldestFirst) {
  // All six outputs and the data stay until backward, which adds a gradient.
  const auto one = testing::away(program_, plan(peak() - 1).lowered.strategy);
  EXPECT_EQ(one, (std::map<std::string, Decision>{{"data", Decision::drop}}));
  const auto two = testing::away(program_, plan(peak() - 1001).lowered.strategy);
  EXPECT_EQ(two,
            (std::map<std::string, Decision>{{"data", Decision::drop}, {"y0", Decision::swap}}));
}

TEST_F(SuperNeuronsCache, ComesBackNoEarlierThanItIsAccessed) {
  const Planned planned = plan(peak() - 1001);
  const AccessIndex index(program_);
  ASSERT_EQ(planned.lowered.strategy.hints.size(), 2U);
  for (const CopyHint& hint : planned.lowered.strategy.hints) {
    EXPECT_EQ(hint.in_trigger, index.gaps()[static_cast<std::size_t>(hint.gap)].to);
  }
  EXPECT_GT(planned.lowered.iteration_time, planned.lowered.compute_time) << "it waits for it";
}

TEST_F(SuperNeuronsCache, WhereWhatMayLeaveIsNotEnoughANoteSaysThatItStreams) {
  const Planned planned = plan(4000);
  EXPECT_TRUE(planned.lowered.streaming);
  EXPECT_THAT(planned.notes, ::testing::Contains(::testing::HasSubstr("cannot train")));
}

}  // namespace
}  // namespace tidepool
