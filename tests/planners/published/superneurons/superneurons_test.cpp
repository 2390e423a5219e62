#include "planners/published/superneurons/superneurons.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "layers_by_kind.h"
#include "planning/make_plan.h"

namespace tidepool {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

class SuperNeurons : public ::testing::Test {
 protected:
  [[nodiscard]] Planned plan(Bytes budget, const MayDecide& may = {},
                             AlgorithmPolicy algorithms = AlgorithmPolicy::least_workspace) const {
    FixedWorkload workload(program_);
    PlannerOptions options;
    options.algorithms = algorithms;
    options.may = may;
    auto planned = make_plan(*make_superneurons(), workload, testing::byte_a_nanosecond(1),
                             {budget, 0}, options);
    EXPECT_TRUE(planned) << planned.error().message;
    return std::move(*planned);
  }
  [[nodiscard]] std::map<std::string, Decision> away(const Strategy& strategy) const {
    return testing::away(program_, strategy);
  }
  [[nodiscard]] std::string trigger(const Strategy& strategy, std::string_view tensor) const {
    const AccessIndex index(program_);
    for (const CopyHint& hint : strategy.hints) {
      const Gap& gap = index.gaps()[static_cast<std::size_t>(hint.gap)];
      if (program_.tensors[static_cast<std::size_t>(gap.tensor)].name != tensor) continue;
      return program_.ops[static_cast<std::size_t>(*hint.in_trigger)].name;
    }
    return "none";
  }

  Program program_ = testing::layers_by_kind();
};

TEST_F(SuperNeurons, CheckpointsLeaveAndCheapLayersAreRecomputed) {
  EXPECT_EQ(away(plan(100'000).lowered.strategy),
            (std::map<std::string, Decision>{{"data", Decision::drop},
                                             {"y0", Decision::swap},
                                             {"y1", Decision::recompute},
                                             {"y2", Decision::swap},
                                             {"y3", Decision::recompute},
                                             {"y4", Decision::swap}}));
}

TEST_F(SuperNeurons, NoReplayRunsACheckpoint) {
  for (Op& op : program_.ops) {
    if (op.kind == "relu_backward")
      std::erase_if(op.accesses, [&](const Access& a) {
        return program_.tensors[static_cast<std::size_t>(a.tensor)].name == "y0";
      });
  }
  // Backward no longer reads what convolution 0 made, so what relu makes of it is its output.
  const auto gone = away(plan(100'000).lowered.strategy);
  EXPECT_FALSE(gone.contains("y0"));
  EXPECT_EQ(gone.at("y1"), Decision::swap);
}

TEST_F(SuperNeurons, TheCheckpointBeforeIsPrefetchedWhileACheckpointGoesBackwards) {
  const Strategy strategy = plan(100'000).lowered.strategy;
  EXPECT_EQ(away(strategy).at("y2"), Decision::swap);
  // Backward of layer 4 reads y3, which is replayed from y2. No checkpoint is behind layer 4.
  EXPECT_EQ(trigger(strategy, "y2"), "none");
  // Backward of layer 2 reads y1, which is replayed from y0; layer 4 is the checkpoint before it in
  // backward.
  EXPECT_EQ(trigger(strategy, "y0"), "backward4");
  EXPECT_EQ(trigger(strategy, "data"), "backward2");
}

TEST_F(SuperNeurons, ASegmentIsReplayedOnce) {
  const Planned planned = plan(100'000);
  int clones = 0;
  for (const Step& step : planned.lowered.steps) clones += step.kind == StepKind::op ? 1 : 0;
  EXPECT_EQ(clones, static_cast<int>(program_.ops.size()) + 2) << "y1 and y3";
}

TEST_F(SuperNeurons, OpsTakeTheFastestAlgorithmThatFitsTheFreeBytes) {
  const std::size_t forward2 = 3;
  const Planned tight = plan(6000);
  const Planned loose = plan(100'000);
  EXPECT_EQ(loose.lowered.strategy.algorithms[forward2], 1);
  EXPECT_EQ(tight.lowered.strategy.algorithms[forward2], 0);
  EXPECT_FALSE(tight.lowered.streaming);
  MayDecide fixed;
  fixed.algorithms = false;
  EXPECT_EQ(plan(100'000, fixed).lowered.strategy.algorithms[forward2], 0);
}

TEST_F(SuperNeurons, StepsDownWorkspacesOfThePolicyThatDoNotFit) {
  const std::size_t forward2 = 3;
  for (const Bytes budget : {5000, 6000, 100'000}) {
    const Planned planned = plan(budget, {}, AlgorithmPolicy::fastest);
    EXPECT_FALSE(planned.lowered.streaming) << budget;
    EXPECT_EQ(planned.lowered.strategy.algorithms[forward2], budget == 100'000 ? 1 : 0) << budget;
    EXPECT_EQ(planned.lowered.iteration_time, plan(budget).lowered.iteration_time);
  }
}

TEST_F(SuperNeurons, DecidesOnlyWhatItMay) {
  MayDecide may;
  may.swap = false;
  EXPECT_EQ(
      away(plan(100'000, may).lowered.strategy),
      (std::map<std::string, Decision>{{"y1", Decision::recompute}, {"y3", Decision::recompute}}));
  may = {};
  may.recompute = false;
  EXPECT_EQ(away(plan(100'000, may).lowered.strategy),
            (std::map<std::string, Decision>{{"data", Decision::drop},
                                             {"y0", Decision::swap},
                                             {"y2", Decision::swap},
                                             {"y4", Decision::swap}}));
}

TEST_F(SuperNeurons, SegmentsLargerThanAnyBackwardPassAreCounted) {
  EXPECT_THAT(plan(100'000).notes, ::testing::Not(Contains(HasSubstr("layer by layer"))));
  // All from layer 2 on become pools: layers 1 to 5 are one segment of 5000 bytes; a backward op
  // accesses 4000 at the most.
  for (Op& op : program_.ops) {
    if (op.layer >= 2) {
      op.kind = op.phase == Phase::forward ? "avg_pool_forward" : "avg_pool_backward";
    }
  }
  EXPECT_THAT(plan(100'000).notes, Contains(HasSubstr("in 1 segment the paper would")));
}

}  // namespace
}  // namespace tidepool
