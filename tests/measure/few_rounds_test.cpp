#include "measure/few_rounds.h"

#include <gtest/gtest.h>

#include "nn/kernel.h"
#include "nn/models/model.h"
#include "nn/training_program.h"

namespace tidepool {
namespace {

Program mlp_in_rounds(std::int64_t batch, std::int64_t sub_batch) {
  nn::TrainingOptions options;
  options.batch = batch;
  options.sub_batch = sub_batch;
  return nn::build_training_program(*nn::build_model("mlp", {}), options, nn::reference_kernels())
      ->program;
}

TEST(FewRounds, HaveEachKindOfRoundOnce) {
  EXPECT_EQ(batch_of_few_rounds(mlp_in_rounds(100, 8)), 8 + 8 + 4);
  EXPECT_EQ(batch_of_few_rounds(mlp_in_rounds(64, 8)), 24);
  EXPECT_EQ(batch_of_few_rounds(mlp_in_rounds(24, 8)), 24);
  EXPECT_EQ(batch_of_few_rounds(mlp_in_rounds(20, 8)), 20);
  EXPECT_EQ(batch_of_few_rounds(mlp_in_rounds(8, 8)), 8);
}

/// Every op of every round gets the time of an op of the same kind, layer and size.
TEST(FewRounds, GiveTheirTimesToAll) {
  Program whole = mlp_in_rounds(100, 8);
  Program few = mlp_in_rounds(batch_of_few_rounds(whole), 8);
  for (std::size_t i = 0; i < few.ops.size(); ++i) {
    few.ops[i].algorithms[0].time = Nanos{static_cast<std::int64_t>(i) + 1};
  }
  ASSERT_TRUE(repeat_times(few, whole));
  const auto with_time = [&](Nanos time) -> const Op& {
    return few.ops[static_cast<std::size_t>(time.count()) - 1];
  };
  for (const Op& op : whole.ops) {
    const Nanos time = op.algorithms[0].time;
    ASSERT_GT(time, Nanos{0}) << op.name;
    const Op& measured = with_time(time);
    EXPECT_EQ(op.kind, measured.kind);
    EXPECT_EQ(op.traffic, measured.traffic);
    EXPECT_EQ(op.name.substr(0, op.name.find('@')),
              measured.name.substr(0, measured.name.find('@')));
    EXPECT_EQ(op.round == 0, measured.round == 0);
    EXPECT_EQ(op.round == 12, measured.round == 2) << "the last";
  }
}

TEST(FewRounds, OfAnotherSizeGiveNothing) {
  Program whole = mlp_in_rounds(100, 8);
  const Program before = whole;
  EXPECT_FALSE(repeat_times(mlp_in_rounds(12, 4), whole));
  EXPECT_FALSE(repeat_times(mlp_in_rounds(8, 8), whole));
  EXPECT_EQ(whole.ops[5].algorithms[0].time, before.ops[5].algorithms[0].time);
}

}  // namespace
}  // namespace tidepool
