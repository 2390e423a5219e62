#include "planners/published/modnn/sub_batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/load_profile.h"
#include "planners/published/modnn/task_memory.h"
#include "support/program_builder.h"
#include "support/sub_batch_workload.h"

namespace tidepool::modnn {
namespace {

using ::testing::ElementsAre;
using testing::SubBatchWorkload;

TEST(SubBatch, SizesAreRoundedAsThePaperSays) {
  const std::pair<std::int64_t, std::int64_t> kRounded[] = {
      {1, 1},   {2, 2},   {3, 2},   {7, 4},    {15, 8},    {16, 16},   {31, 16},
      {32, 32}, {63, 32}, {64, 64}, {100, 64}, {128, 128}, {191, 128}, {1000, 960}};
  for (const auto& [size, rounded] : kRounded) EXPECT_EQ(round_sub_batch(size), rounded) << size;
}

/// A chain of ten tasks, 10 bytes each; the fifth has a workspace.
Program chain() {
  using enum AccessMode;
  testing::ProgramBuilder b;
  TensorId before = b.tensor("x0", 10);
  const TensorId weight = b.tensor("weight", 7, true);
  b.host("feed", {{before, write}});
  for (int i = 1; i <= 10; ++i) {
    const TensorId next = b.tensor(fmt::format("x{}", i), 10);
    b.device(fmt::format("task{}", i), {{before, read}, {weight, read}, {next, write}}, Nanos{9},
             i == 5 ? 100 : 0);
    before = next;
  }
  b.device("update", {{before, read}, {weight, update}}, Nanos{9});
  b.last().phase = Phase::update;
  return b.build();
}

TEST(SubBatch, AWindowCountsEachBlockOnceAndTheLargestWorkspace) {
  const Program p = chain();
  const auto algorithms = least_workspace_algorithms(p);
  const auto bytes = [&](double alpha, bool leave = false) {
    return window_bytes(p, algorithms, {alpha, 1, leave});
  };
  EXPECT_EQ(bytes(0.1), 7 + 20 + 100) << "one task";
  EXPECT_EQ(bytes(0.15), 7 + 30 + 100) << "two tasks share a block";
  EXPECT_EQ(bytes(0.5), 7 + 60 + 100);
  EXPECT_EQ(bytes(1.0), 7 + 110 + 100) << "the update is not one of them";
  EXPECT_EQ(bytes(0.5, true), 7 + 60 + 100) << "a weight that is a block";
  EXPECT_EQ(window_bytes(p, algorithms, {0.1, 16, false}), 16 + 32 + 112);
}

class Selection : public ::testing::Test {
 protected:
  std::int64_t select(Bytes budget) {
    SubBatchRule rule;
    rule.budget = budget;
    rule.window.alignment = 64;
    rule.algorithms = fastest_algorithms;
    const auto chosen = select_sub_batch(workload_, rule);
    EXPECT_TRUE(chosen);
    return chosen.value_or(0);
  }
  Bytes needed(std::int64_t size) {
    const Program& p = **workload_.program(size);
    return window_bytes(p, fastest_algorithms(p), {kPublishedAlpha, 64, false});
  }
  SubBatchWorkload workload_;
};

TEST_F(Selection, TheLargestSizeThatFitsIsChosen) {
  for (const std::int64_t size : workload_.sub_batches()) {
    EXPECT_EQ(select(needed(size)), size);
    EXPECT_EQ(select(needed(size) - 1), std::max<std::int64_t>(size / 2, 1));
  }
}

TEST_F(Selection, OnlySomeSizesAreLookedAt) {
  select(Bytes{1} << 30);
  EXPECT_EQ(workload_.asked().count(1), 0u) << "a binary search from the middle up";
  EXPECT_EQ(workload_.asked().at(8), 1);
}

/// Every size of a batch, as plain activations.
class AllSizes : public Workload {
 public:
  explicit AllSizes(std::int64_t batch) : batch_(batch) {}
  [[nodiscard]] std::int64_t sub_batch() const override { return batch_; }
  [[nodiscard]] std::vector<std::int64_t> sub_batches() const override {
    std::vector<std::int64_t> sizes;
    for (std::int64_t size = batch_; size > 0; --size) sizes.push_back(size);
    return sizes;
  }
  Result<const Program*> program(std::int64_t sub_batch) override {
    testing::ProgramBuilder b;
    const TensorId x = b.tensor("x", sub_batch);
    b.device("make", {{x, AccessMode::write}}, Nanos{1});
    program_ = b.build();
    return &program_;
  }

 private:
  std::int64_t batch_;
  Program program_;
};

TEST(SubBatch, WhatIsNotTheWholeBatchIsRounded) {
  AllSizes workload(200);
  SubBatchRule rule;
  rule.algorithms = fastest_algorithms;
  const std::pair<Bytes, std::int64_t> kChosen[] = {{1000, 200}, {200, 200}, {199, 192}, {150, 128},
                                                    {63, 32},    {5, 4},     {1, 1},     {0, 1}};
  for (const auto& [budget, size] : kChosen) {
    rule.budget = budget;
    EXPECT_EQ(*select_sub_batch(workload, rule), size) << budget;
  }
}

TEST(SubBatch, APlannerTriesSmallerOnesBehindTheChosenOne) {
  SubBatchWorkload workload;
  const Machine machine = testing::byte_a_nanosecond(64);
  const Program& p = **workload.program(4);
  const Budget budget{window_bytes(p, fastest_algorithms(p), {kPublishedAlpha, 64, false}), 0};
  PlannerOptions options;
  auto context = PlannerContext::make(workload, machine, budget, options);
  ASSERT_TRUE(context);
  EXPECT_THAT(sub_batches_from_chosen(*context, {})->sizes, ElementsAre(4, 2, 1));
  EXPECT_TRUE(sub_batches_from_chosen(*context, {})->fits);
  options.may.sub_batch = false;
  EXPECT_THAT(sub_batches_from_chosen(*context, {})->sizes, ElementsAre(8));
}

}  // namespace
}  // namespace tidepool::modnn
