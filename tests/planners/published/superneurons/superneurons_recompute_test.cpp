#include "planners/published/superneurons/superneurons_recompute.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "layers_by_kind.h"
#include "planning/make_plan.h"

namespace tidepool {
namespace {

Planned recompute_only(const Program& program, Bytes budget) {
  FixedWorkload workload(program);
  auto planned = make_plan(*make_superneurons_recompute(), workload, testing::byte_a_nanosecond(1),
                           {budget, 0}, {});
  EXPECT_TRUE(planned) << planned.error().message;
  return std::move(*planned);
}

TEST(SuperNeuronsRecompute, CheapLayersAreComputedAgainAndCheckpointsStay) {
  const Program program = testing::layers_by_kind();
  EXPECT_EQ(
      testing::away(program, recompute_only(program, 100'000).lowered.strategy),
      (std::map<std::string, Decision>{{"y1", Decision::recompute}, {"y3", Decision::recompute}}));
}

TEST(SuperNeuronsRecompute, WhereThatIsNotEnoughANoteSaysThatItStreams) {
  const Program program = testing::layers_by_kind();
  const Planned planned = recompute_only(program, 4000);
  EXPECT_TRUE(planned.lowered.streaming);
  EXPECT_THAT(planned.notes, ::testing::Contains(::testing::HasSubstr("cannot train")));
}

}  // namespace
}  // namespace tidepool
