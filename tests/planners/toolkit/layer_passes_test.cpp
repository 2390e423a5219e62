#include "planners/toolkit/layer_passes.h"

#include <gtest/gtest.h>

#include "ir/load_profile.h"
#include "support/sub_batch_workload.h"

namespace tidepool {
namespace {

std::vector<Bytes> load_of(const Program& program) {
  return load_profile(program, AccessIndex(program), 64, least_workspace_algorithms(program)).at_op;
}

TEST(LayerPasses, FollowTheLayersAndPhasesOfAProgram) {
  testing::SubBatchWorkload workload;
  const Program& program = **workload.program(4);
  const LayerPasses passes(program, load_of(program));
  constexpr auto kLayers = static_cast<std::size_t>(testing::SubBatchWorkload::kLayers);
  ASSERT_EQ(passes.passes().size(), 2 * 2 * kLayers + kLayers);
  for (std::size_t round = 0; round < 2; ++round) {
    for (std::size_t i = 0; i < 2 * kLayers; ++i) {
      const LayerPass& pass = passes.pass(round * 2 * kLayers + i);
      EXPECT_EQ(pass.round, static_cast<std::int32_t>(round));
      EXPECT_EQ(pass.phase, i < kLayers ? Phase::forward : Phase::backward);
      EXPECT_EQ(pass.layer, static_cast<std::int32_t>(i < kLayers ? i : 2 * kLayers - 1 - i));
      EXPECT_EQ(pass.first, pass.last);
    }
  }
  EXPECT_EQ(passes.passes().back().phase, Phase::update);
  EXPECT_EQ(passes.pass_of(0), kNone) << "a host op";
}

TEST(LayerPasses, OpsOfALayerOneAfterAnotherAreOnePass) {
  testing::SubBatchWorkload workload;
  Program program = **workload.program(8);
  for (Op& op : program.ops) {
    if (op.layer != kNone) op.layer /= 2;
  }
  const LayerPasses passes(program, load_of(program));
  ASSERT_GE(passes.passes().size(), 2U);
  EXPECT_EQ(passes.pass(0).last, passes.pass(0).first + 1);
  EXPECT_EQ(passes.pass_of(passes.pass(0).last), 0);
}

TEST(LayerPasses, WithoutLayersEachOpIsOneAndTheLoadTellsTheDirection) {
  testing::SubBatchWorkload workload;
  Program program = **workload.program(4);
  program.layers.clear();
  for (Op& op : program.ops) {
    op.layer = kNone;
    op.phase = Phase::other;
  }
  const auto load = load_of(program);
  const LayerPasses passes(program, load);
  for (std::int32_t round = 0; round < 2; ++round) {
    OpId peak = kNone;
    for (OpId op = 0; op < static_cast<OpId>(program.ops.size()); ++op) {
      const auto i = static_cast<std::size_t>(op);
      if (program.ops[i].round != round) continue;
      if (peak == kNone || load[i] > load[static_cast<std::size_t>(peak)]) peak = op;
    }
    for (OpId op = 0; op < static_cast<OpId>(program.ops.size()); ++op) {
      if (program.ops[static_cast<std::size_t>(op)].round != round) continue;
      EXPECT_EQ(passes.phase_of(op), op <= peak ? Phase::forward : Phase::backward) << op;
      if (passes.pass_of(op) == kNone) continue;
      const LayerPass& pass = passes.pass(static_cast<std::size_t>(passes.pass_of(op)));
      EXPECT_EQ(pass.first, op);
      EXPECT_EQ(pass.last, op);
    }
  }
}

}  // namespace
}  // namespace tidepool
