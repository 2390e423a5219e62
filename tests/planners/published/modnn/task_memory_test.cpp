#include "planners/published/modnn/task_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/load_profile.h"
#include "support/program_builder.h"
#include "support/random_program.h"

namespace tidepool::modnn {
namespace {

using ::testing::ElementsAre;

/// Input 100, hidden 400, gradient of hidden 400, weight 50, its gradient 50.
Program two_layers() {
  using enum AccessMode;
  testing::ProgramBuilder b;
  const TensorId input = b.tensor("input", 100);
  const TensorId weight = b.tensor("weight", 50, true);
  const TensorId hidden = b.tensor("hidden", 400);
  const TensorId delta = b.tensor("delta", 400);
  const TensorId gradient = b.tensor("gradient", 50);
  b.host("feed", {{input, write}});
  b.device("forward", {{input, read}, {weight, read}, {hidden, write}}, Nanos{9}, 10);
  b.last().algorithms.push_back({"fast", Nanos{5}, 70, true});
  b.device("loss", {{hidden, read}, {delta, write}}, Nanos{9});
  b.device("backward", {{input, read}, {delta, read}, {gradient, write}}, Nanos{9}, 20);
  b.device("update", {{gradient, read}, {weight, update}}, Nanos{9});
  Program p = b.build();
  p.tensors[4].kind = TensorKind::gradient;
  p.tensors[3].kind = TensorKind::gradient;  // not of a weight
  return p;
}

TEST(TaskMemory, WeightsAreStateAndTheGradientsThatChangeIt) {
  EXPECT_THAT(find_weights(two_layers()), ElementsAre(0, 1, 0, 0, 1));
  EXPECT_EQ(weight_bytes(two_layers(), 1), 100);
  EXPECT_EQ(weight_bytes(two_layers(), 64), 128);
}

TEST(TaskMemory, TheBoundIsWeightsAndTheLargestTask) {
  const MemoryBound with = bound_with_weights(two_layers(), 1);
  EXPECT_EQ(with.bytes, 100 + 800);
  EXPECT_EQ(with.task, 2) << "loss";
  const MemoryBound without = bound_without_weights(two_layers(), 1);
  EXPECT_EQ(without.bytes, 800);
  Program p = two_layers();
  p.tensors[3].bytes = 100;
  EXPECT_EQ(bound_with_weights(p, 1).bytes, 100 + 100 + 400 + 10) << "forward, least workspace";
  EXPECT_EQ(bound_without_weights(p, 1).bytes, 100 + 50 + 400 + 10);
}

TEST(TaskMemory, WithoutWeightsItIsTheSmallestBudget) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Program p = testing::random_program(seed);
    EXPECT_EQ(bound_without_weights(p, 64).bytes, smallest_budget(p, 64).bytes);
  }
}

TEST(TaskMemory, IdealIsEverythingAtOnceWithTheLargestFastestWorkspace) {
  EXPECT_EQ(ideal_memory(two_layers(), 1), 100 + 50 + 400 + 400 + 50 + 70);
  using enum AccessMode;
  testing::ProgramBuilder b;
  const TensorId seen = b.tensor("seen by the host alone", 1000);
  const TensorId x = b.tensor("x", 10);
  b.host("make", {{seen, write}});
  b.device("use", {{x, write}}, Nanos{1});
  EXPECT_EQ(ideal_memory(b.build(), 1), 10);
}

}  // namespace
}  // namespace tidepool::modnn
