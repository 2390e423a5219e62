#include "planners/published/vdnn/vdnn_conv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "ir/load_profile.h"
#include "planning/make_plan.h"
#include "support/sub_batch_workload.h"

namespace tidepool {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

/// Layers 0 and 2 are convolutions, 1 and 3 activations.
Program every_second_convolution() {
  Program program = **testing::SubBatchWorkload().program(testing::SubBatchWorkload::kBatch);
  for (Op& op : program.ops) {
    if (op.phase == Phase::forward) op.kind = op.layer % 2 == 0 ? "conv_forward" : "relu_forward";
  }
  return program;
}

std::map<std::string, Decision> offloaded_by_conv(const Program& program) {
  FixedWorkload workload(program);
  const auto planned = make_plan(*make_vdnn_conv(), workload, testing::byte_a_nanosecond(64),
                                 {Bytes{1} << 30, 0}, {});
  EXPECT_TRUE(planned) << planned.error().message;
  std::map<std::string, Decision> result;
  const AccessIndex index(program);
  for (std::size_t g = 0; g < index.gaps().size(); ++g) {
    const Decision decision = planned->lowered.strategy.gaps[g];
    if (decision == Decision::keep) continue;
    result[program.tensors[static_cast<std::size_t>(index.gaps()[g].tensor)].name] = decision;
  }
  return result;
}

TEST(VdnnConv, OnlyInputsOfConvolutionsLeave) {
  EXPECT_EQ(offloaded_by_conv(every_second_convolution()),
            (std::map<std::string, Decision>{{"x0@0", Decision::drop}, {"x2@0", Decision::swap}}));
}

TEST(VdnnConv, AnInputThatAnotherLayerReadsLaterIsOffloadedAllTheSame) {
  Program program = every_second_convolution();
  program.ops[4].accesses.push_back({program.ops[3].accesses[0].tensor, AccessMode::read});
  EXPECT_TRUE(offloaded_by_conv(program).contains("x2@0"));
}

TEST(VdnnConv, WithoutConvolutionsNothingLeaves) {
  EXPECT_TRUE(
      offloaded_by_conv(**testing::SubBatchWorkload().program(testing::SubBatchWorkload::kBatch))
          .empty());
}

TEST(VdnnConv, WhereItDoesNotFitANoteSaysSo) {
  const Program program = every_second_convolution();
  FixedWorkload workload(program);
  const auto planned = make_plan(*make_vdnn_conv(), workload, testing::byte_a_nanosecond(64),
                                 {smallest_budget(program, 64).bytes, 0}, {});
  ASSERT_TRUE(planned) << planned.error().message;
  EXPECT_TRUE(planned->lowered.streaming);
  EXPECT_THAT(planned->notes, Contains(HasSubstr("vDNN cannot train")));
}

}  // namespace
}  // namespace tidepool
