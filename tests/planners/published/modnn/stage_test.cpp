#include "planners/published/modnn/stage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/at.h"
#include "support/program_builder.h"

namespace tidepool::modnn {
namespace {

using ::testing::ElementsAre;
using enum AccessMode;

class StageTest : public ::testing::Test {
 protected:
  Stage& make(Bytes memory, bool weights_leave = false) {
    program_ = builder_.build();
    index_.emplace(program_);
    stage_.emplace(program_, *index_, machine_, StageOptions{memory, weights_leave, false});
    return *stage_;
  }
  testing::ProgramBuilder builder_;
  Machine machine_ = testing::byte_a_nanosecond();
  Program program_;
  std::optional<AccessIndex> index_;
  std::optional<Stage> stage_;
};

TEST_F(StageTest, WeightsAndSumsOverRoundsStayAtTheBottom) {
  const TensorId weight = builder_.tensor("weight", 8, true);
  const TensorId sum = builder_.tensor("sum", 4);
  const TensorId x = builder_.tensor("x", 2);
  builder_.device("first", {{weight, read}, {x, write}, {sum, write}}, Nanos{1});
  builder_.device("second", {{x, read}, {sum, update}}, Nanos{1});
  builder_.last().round = 1;
  builder_.device("update", {{sum, read}, {weight, update}}, Nanos{1});
  builder_.last().round = kNone;
  make(20);
  EXPECT_FALSE(stage_->stays(sum)) << "an activation";
  program_.tensors[at(sum.value())].kind = TensorKind::gradient;
  stage_.emplace(program_, *index_, machine_, StageOptions{20, false, false});
  EXPECT_TRUE(stage_->stays(weight));
  EXPECT_TRUE(stage_->stays(sum));
  EXPECT_FALSE(stage_->stays(x));
  EXPECT_EQ(stage_->pool(), 20 - 12);
  EXPECT_EQ(stage_->offset(sum), 8);
  ASSERT_TRUE(stage_->place(x, Nanos{0}, 0));
  EXPECT_EQ(stage_->offset(x), 12);
  stage_.emplace(program_, *index_, machine_, StageOptions{20, true, false});
  EXPECT_FALSE(stage_->stays(weight));
  EXPECT_TRUE(stage_->starts_on_host(weight));
  EXPECT_THAT(stage_->missing_at(0), ElementsAre(weight));
  EXPECT_EQ(stage_->pool(), 20);
}

TEST_F(StageTest, WhatNobodyReadsAnyMoreIsFreed) {
  const TensorId x = builder_.tensor("x", 8);
  const TensorId y = builder_.tensor("y", 8);
  builder_.device("make", {{x, write}}, Nanos{1});
  builder_.device("use", {{x, read}, {y, write}}, Nanos{1});
  builder_.device("again", {{x, write}, {y, read}}, Nanos{1});
  make(16);
  stage_->place(x, Nanos{0}, 0);
  stage_->run(0, 0, {}, Nanos{1});
  EXPECT_TRUE(stage_->block(x).holds);
  stage_->place(y, Nanos{0}, 1);
  stage_->run(1, 0, {}, Nanos{2});
  EXPECT_FALSE(stage_->present(x)) << "it is overwritten next";
  EXPECT_EQ(stage_->next_missing(1), kNone);
  EXPECT_EQ(stage_->memory().free_bytes(), 8);
  EXPECT_EQ(stage_->decisions()[0], Decision::keep);
  EXPECT_EQ(stage_->decisions()[1], Decision::drop);
}

TEST_F(StageTest, AValueIsCopiedOutOnceAndOnlyFreedAfterwards) {
  const TensorId x = builder_.tensor("x", 8);
  const TensorId y = builder_.tensor("y", 8);
  builder_.device("make", {{x, write}}, Nanos{10});
  for (int i = 0; i < 3; ++i) builder_.device(fmt::format("use{}", i), {{x, read}}, Nanos{10});
  builder_.device("change", {{x, update}}, Nanos{10});
  builder_.device("last", {{x, read}, {y, write}}, Nanos{10});
  make(8);
  const auto copies = [&] {
    std::vector<bool> out;
    for (const StagedItem& item : stage_->items()) {
      if (item.kind == InstructionKind::copy) out.push_back(item.out);
    }
    return out;
  };
  stage_->place(x, Nanos{0}, 0);
  stage_->run(0, 0, {}, Nanos{10});
  EXPECT_FALSE(stage_->look_for_space(8, Nanos{10}, 0)) << "unused since it was made";
  stage_->run(1, 0, {}, Nanos{20});
  EXPECT_FALSE(stage_->look_for_space(8, Nanos{10}, 2)) << "the next op uses it";
  const auto space = stage_->look_for_space(8, Nanos{20}, 1);
  ASSERT_TRUE(space);
  EXPECT_EQ(space->free_from, Nanos{20}) << "copied out from 10 to 18, read until 20";
  stage_->clear();
  EXPECT_THAT(stage_->missing_at(2), ElementsAre(x));
  stage_->place(x, Nanos{20}, 2);
  stage_->load(x, Nanos{20});
  EXPECT_EQ(stage_->block(x).ready, Nanos{28});
  stage_->run(2, 0, {}, Nanos{38});
  stage_->clear();
  EXPECT_THAT(copies(), ElementsAre(true, false)) << "the host has it";
  stage_->place(x, Nanos{38}, 3);
  stage_->load(x, Nanos{38});
  stage_->run(3, 0, {}, Nanos{56});
  stage_->run(4, 0, {}, Nanos{66});
  stage_->clear();
  EXPECT_THAT(copies(), ElementsAre(true, false, false, true)) << "a new value";
  EXPECT_THAT(stage_->decisions(), ElementsAre(Decision::keep, Decision::swap, Decision::drop,
                                               Decision::keep, Decision::swap));
}

TEST_F(StageTest, AHostOpIsIssuedEarlyWhereAllItNeedsIsThere) {
  const TensorId input = builder_.tensor("input", 8);
  const TensorId loss = builder_.tensor("loss", 4);
  const TensorId next = builder_.tensor("next input", 8);
  builder_.host("feed", {{input, write}});
  builder_.device("train", {{input, read}, {loss, write}}, Nanos{10});
  builder_.device("more", {{input, read}}, Nanos{10});
  builder_.host("collect", {{loss, read}});
  builder_.host("feed again", {{next, write}});
  builder_.device("train again", {{next, read}}, Nanos{10});
  make(40);
  EXPECT_THAT(stage_->missing_at(1), ElementsAre(input));
  EXPECT_THAT(stage_->missing_at(5), ElementsAre(next));
  EXPECT_FALSE(stage_->fetch(next)) << "collect comes first, and has no loss";
  EXPECT_TRUE(stage_->block(input).on_host) << "what could be issued was";
  stage_->place(input, Nanos{0}, 1);
  stage_->load(input, Nanos{0});
  stage_->place(loss, Nanos{0}, 1);
  stage_->run(1, 0, {}, Nanos{18});
  EXPECT_FALSE(stage_->present(loss)) << "copied out as soon as it was made";
  EXPECT_TRUE(stage_->fetch(next));
  EXPECT_TRUE(stage_->block(next).on_host);
  EXPECT_EQ(stage_->items().back().op, 4);
}

// A gradient on its way to the host keeps its bytes until it is there, as long as others are free.
TEST_F(StageTest, BytesThatACopyOutStillReadsAreTakenLast) {
  const TensorId sent = builder_.tensor("sent", 8);
  const TensorId y = builder_.tensor("y", 8);
  const TensorId z = builder_.tensor("z", 8);
  builder_.device("make", {{sent, write}}, Nanos{10});
  builder_.device("others", {{y, write}, {z, write}}, Nanos{10});
  builder_.host("collect", {{sent, read}, {y, read}, {z, read}});
  const auto begin = [&](Bytes memory) {
    make(memory);
    stage_->place(sent, Nanos{0}, 0);
    stage_->run(0, 0, {}, Nanos{10});  // copied out from 10 to 18
    EXPECT_FALSE(stage_->present(sent));
  };
  begin(16);
  ASSERT_TRUE(stage_->place(y, Nanos{10}, 1));
  EXPECT_EQ(stage_->offset(y), 8);
  EXPECT_EQ(stage_->free_from(stage_->block(y).segment), Nanos{0});
  ASSERT_TRUE(stage_->place(z, Nanos{10}, 1)) << "nothing else is free";
  EXPECT_EQ(stage_->offset(z), 0);
  EXPECT_EQ(stage_->free_from(stage_->block(z).segment), Nanos{18}) << "who takes them waits";
  begin(16);
  ASSERT_TRUE(stage_->place(y, Nanos{18}, 1));
  EXPECT_EQ(stage_->offset(y), 0) << "the copy has ended";
}

TEST_F(StageTest, WeightsThatLeaveGoBackWhenTheyHaveChanged) {
  const TensorId weight = builder_.tensor("weight", 8, true);
  const TensorId table = builder_.tensor("table", 8, true);
  builder_.device("use", {{weight, read}, {table, read}}, Nanos{10});
  builder_.device("update", {{weight, update}}, Nanos{10});
  make(16, true);
  for (const TensorId t : {weight, table}) {
    stage_->place(t, Nanos{0}, 0);
    stage_->load(t, Nanos{0});
  }
  stage_->run(0, 0, {}, Nanos{26});
  EXPECT_FALSE(stage_->present(table)) << "unchanged";
  stage_->run(1, 0, {}, Nanos{36});
  EXPECT_FALSE(stage_->present(weight));
  EXPECT_TRUE(stage_->items().back().out);
  EXPECT_EQ(stage_->items().back().tensor, weight);
  // use-update, update-use of the next iteration; use-use of the table.
  EXPECT_THAT(stage_->decisions(), ElementsAre(Decision::keep, Decision::swap, Decision::drop));
}

}  // namespace
}  // namespace tidepool::modnn
