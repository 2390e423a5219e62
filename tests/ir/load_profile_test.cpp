#include "ir/load_profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/program_builder.h"

namespace tidepool {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::ProgramBuilder;
using testing::tiny_training;
using enum AccessMode;

LoadProfile profile_of(const Program& program, Bytes alignment) {
  return load_profile(program, AccessIndex(program), alignment,
                      least_workspace_algorithms(program));
}

TEST(LoadProfile, ATrainingIterationByHand) {
  // weight 512 always; input 256 in forward; hidden 1024 from forward to backward; output 512 from
  // head to backward; gradient 512 in backward and update; head has 2048 of workspace.
  const LoadProfile profile = profile_of(tiny_training(), 1);
  EXPECT_THAT(profile.at_op, ElementsAre(512,                      // feed: between iterations
                                         512 + 256 + 1024,         // forward
                                         512 + 1024 + 512 + 2048,  // head
                                         512 + 1024 + 512 + 512,   // backward
                                         512 + 512,                // update
                                         512));                    // collect
  EXPECT_EQ(profile.peak, 4096);
  EXPECT_EQ(profile.peak_op, 2);
}

TEST(ComputeTime, IsTheSumOfTheChosenAlgorithmsOfDeviceOps) {
  Program program = tiny_training();
  std::vector<std::int32_t> choice = least_workspace_algorithms(program);
  Nanos sum{0};
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    Op& op = program.ops[i];
    op.algorithms.push_back(op.algorithms[0]);
    op.algorithms.back().time = Nanos{std::int64_t{1} << i};
    choice[i] = static_cast<std::int32_t>(op.algorithms.size()) - 1;
    if (op.place == OpPlace::device) sum += op.algorithms.back().time;
  }
  EXPECT_GT(sum, Nanos{0});
  EXPECT_EQ(compute_time(program, choice), sum);
}

TEST(LoadProfile, EveryTensorAndWorkspaceIsRoundedUpToTheAlignment) {
  ProgramBuilder b;
  const TensorId x = b.tensor("x", 1);
  const TensorId y = b.tensor("y", 65);
  b.device("a", {{x, write}, {y, write}}, Nanos{1}, 3);
  b.device("b", {{x, read}}, Nanos{1});
  EXPECT_THAT(profile_of(b.build(), 64).at_op, ElementsAre(64 + 128 + 64, 64));
}

TEST(LoadProfile, TensorsThatNeverTouchTheDeviceWeighNothing) {
  ProgramBuilder b;
  const TensorId h = b.tensor("h", 1000);
  const TensorId x = b.tensor("x", 10);
  b.host("write", {{h, write}});
  b.device("work", {{x, write}}, Nanos{1});
  b.host("read", {{h, read}});
  EXPECT_THAT(profile_of(b.build(), 1).at_op, ElementsAre(0, 10, 0));
}

TEST(LoadProfile, TheChosenAlgorithmsWorkspaceCounts) {
  Program p = tiny_training();
  p.ops[2].algorithms.push_back({"small", Nanos{9000}, 64, true});
  const AccessIndex index(p);
  std::vector<std::int32_t> choice(p.ops.size(), 0);
  EXPECT_EQ(load_profile(p, index, 1, choice).at_op[2], 2048 + 2048);
  choice[2] = 1;
  EXPECT_EQ(load_profile(p, index, 1, choice).at_op[2], 2048 + 64);
  EXPECT_EQ(least_workspace_algorithms(p)[2], 1);
  EXPECT_EQ(fastest_algorithms(p)[2], 0);
}

TEST(WorkingSet, IsTheOpsTensorsAndWorkspaceAndNothingElse) {
  const Program p = tiny_training();
  EXPECT_EQ(working_set(p, 1, 1, 0), 256 + 512 + 1024);
  EXPECT_EQ(working_set(p, 2, 1, 0), 1024 + 512 + 2048);
  EXPECT_EQ(working_set(p, 2, 4096, 0), 3 * 4096);
  EXPECT_EQ(working_set(p, 0, 1, 0), 0) << "host ops need no device bytes";
}

TEST(SmallestBudget, IsTheLargestWorkingSetAndNamesItsOp) {
  const SmallestBudget smallest = smallest_budget(tiny_training(), 1);
  EXPECT_EQ(smallest.bytes, 1024 + 512 + 2048);
  EXPECT_EQ(smallest.op, 2);
}

TEST(SmallestBudget, UsesTheLeastWorkspaceAlgorithm) {
  Program p = tiny_training();
  p.ops[2].algorithms.push_back({"small", Nanos{9000}, 0, true});
  const SmallestBudget smallest = smallest_budget(p, 1);
  EXPECT_EQ(smallest.bytes, 1024 + 512 + 512);
  EXPECT_EQ(smallest.op, 3);
}

/// The weight is taken in front of `forward` and behind `update`, and away in between.
TEST(SmallestBudget, CountsWhatIsAtHome) {
  Program program = tiny_training();
  const Bytes without = smallest_budget(program, 1).bytes;
  Tensor& weight = program.tensors[1];
  ASSERT_EQ(weight.name, "weight");
  weight.home = Home::device;
  EXPECT_THAT(unmovable_load(program, 1), ElementsAre(512, 0, 0, 0, 0, 512));
  EXPECT_EQ(smallest_budget(program, 1).bytes, without);
  // An op behind the update.
  Op last = program.ops[2];
  last.name = "evaluate";
  last.recomputable = false;
  program.ops.push_back(last);
  ASSERT_TRUE(validate(program));
  const SmallestBudget smallest = smallest_budget(program, 1);
  EXPECT_EQ(smallest.bytes, without + 512);
  EXPECT_EQ(smallest.op, 6);
  EXPECT_THAT(explain(smallest, program), HasSubstr("are at home (512 B)"));
  EXPECT_EQ(profile_of(program, 1).at_op[6], smallest.bytes);
}

TEST(Explain, NamesTheBytesTheOpItsTensorsAndItsWorkspace) {
  const Program p = tiny_training();
  const std::string text = explain(smallest_budget(p, 1), p);
  EXPECT_THAT(text, HasSubstr("3584 B"));
  EXPECT_THAT(text, HasSubstr("op 'head'"));
  EXPECT_THAT(text, HasSubstr("'hidden' (1.0 KiB)"));
  EXPECT_THAT(text, HasSubstr("'output' (512 B)"));
  EXPECT_THAT(text, HasSubstr("workspace (2.0 KiB)"));
}

TEST(Explain, LeavesOutAWorkspaceThatIsNotThere) {
  Program p = tiny_training();
  p.ops[2].algorithms[0].workspace = 0;
  EXPECT_THAT(explain(smallest_budget(p, 1), p), Not(HasSubstr("workspace")));
}

TEST(Explain, AProgramWithoutDeviceOpsNeedsNothing) {
  ProgramBuilder b;
  const TensorId h = b.tensor("h", 8);
  b.host("write", {{h, write}});
  const Program p = b.build();
  EXPECT_EQ(smallest_budget(p, 64).bytes, 0);
  EXPECT_THAT(explain(smallest_budget(p, 64), p), HasSubstr("no op needs"));
}

}  // namespace
}  // namespace tidepool
