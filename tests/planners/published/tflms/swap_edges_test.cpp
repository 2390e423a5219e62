#include "planners/published/tflms/swap_edges.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "ir/load_profile.h"
#include "planners/published/capuchin/capuchin_program.h"

namespace tidepool {
namespace {

using ::testing::ElementsAre;
using Chain = testing::CapuchinChain;

/// Levels: feed 0, forward i at i + 1, backward i at 10 - i.
class SwapEdges : public ::testing::Test {
 protected:
  [[nodiscard]] Strategy swap(const EdgeParameters& parameters) const {
    return swap_edges(program_, AccessIndex(program_), topological_levels(program_), parameters,
                      least_workspace_algorithms(program_));
  }
  /// "tensor before op" for each gap that is away.
  [[nodiscard]] std::vector<std::string> away(const EdgeParameters& parameters) const {
    const Strategy strategy = swap(parameters);
    const AccessIndex index(program_);
    std::vector<std::string> names;
    for (std::size_t g = 0; g < strategy.gaps.size(); ++g) {
      if (strategy.gaps[g] == Decision::keep) continue;
      const Gap& gap = index.gaps()[g];
      names.push_back(program_.tensors[static_cast<std::size_t>(gap.tensor)].name + " before " +
                      program_.ops[static_cast<std::size_t>(gap.to)].name);
    }
    return names;
  }

  Program program_ = Chain::make();
};

TEST_F(SwapEdges, LevelsFollowWhatIsRead) {
  EXPECT_THAT(topological_levels(program_), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10));
}

TEST_F(SwapEdges, EdgesOverMoreLevelsThanTheThresholdAreSwapped) {
  // x(i) is made at level i and read by backward at 10 - i.
  EXPECT_THAT(away({5, 0, 1}),
              ElementsAre("x0 before backward0", "x1 before backward1", "x2 before backward2"));
  EXPECT_THAT(away({6, 0, 1}), ElementsAre("x0 before backward0", "x1 before backward1"));
  EXPECT_TRUE(away({10, 0, 1}).empty());
}

TEST_F(SwapEdges, ACopyInIsTriggeredLevelsAhead) {
  const auto trigger = [&](std::int32_t ahead) {
    return *swap({7, 0, ahead}).hints.back().in_trigger;  // x1, whose reader is at level 9
  };
  EXPECT_EQ(trigger(1), Chain::kBackward2);
  EXPECT_EQ(trigger(2), Chain::kBackward3);
  EXPECT_EQ(trigger(100), Chain::kForward0 + 2) << "behind the copy out";
}

TEST_F(SwapEdges, ReadersWithinAGroupShareACopyIn) {
  // backward1 and backward0, levels 9 and 10, both read x0.
  program_.ops[Chain::kBackward2 + 1].accesses.push_back({0, AccessMode::read});
  EXPECT_THAT(away({8, 0, 1}), ElementsAre("x0 before backward1", "x0 before backward0"));
  EXPECT_THAT(away({8, 1, 1}), ElementsAre("x0 before backward1"));
}

}  // namespace
}  // namespace tidepool
